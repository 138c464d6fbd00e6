"""The command line while it is being imported: Ctrl-C and lack of memory end it with one line there too."""

from __future__ import annotations

import errno
import os
import signal
import sys
from types import FrameType, TracebackType

from cranfield import _watching

SHORT_OF_MEMORY = "not enough memory{}; ask for less, or run one system at a time"
"""Message for running out of memory, with a placeholder for details."""

TOO_LITTLE_MEMORY = (
    "this shell limits a command to {:.1f} GiB of address space, and cranfield's libraries alone reserve up to "
    "{:.1f} GiB (most of it is never used); raise the limit, for example with: ulimit -v unlimited"
)

_COMMAND = ("cranfield", "cranfield.exe", "cranfield-script.py")


def guard() -> None:
    """Until `release`, let Ctrl-C and lack of memory end a command-line process without a traceback."""
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stopped)
        sys.excepthook = _short
        _watch_if_limited()


def _watch_if_limited() -> None:
    limit, least = _watching.limit(), _watching.least()
    if limit is None:
        return
    if limit < least:
        _end(TOO_LITTLE_MEMORY.format(limit / 2**30, least / 2**30), 2)
    _watching.watch(SHORT_OF_MEMORY.format(""))


def release() -> None:
    """Leave Ctrl-C and errors to the command line, which is now loaded."""
    if signal.getsignal(signal.SIGINT) is _stopped:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.excepthook = sys.__excepthook__


def is_short_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory has run out; not only `MemoryError` does.

    Examples
    --------
    >>> is_short_of_memory(ImportError("libblas.so: failed to map segment from shared object"))
    True
    """
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or _watching.says_short_of_memory(str(error))


def _is_command() -> bool:
    called = sys.argv[0] if sys.argv else ""
    # While a package is being imported for ``python -m``, sys.argv[0] is "-m" instead of its file.
    as_module = called == "-m" and ("-m", "cranfield") in zip(sys.orig_argv, sys.orig_argv[1:])
    return as_module or os.path.basename(called) in _COMMAND  # noqa: PTH119


def _stopped(_: int, __: FrameType | None) -> None:
    _end("stopped", 130)


def _short(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if is_short_of_memory(error):
        _end(SHORT_OF_MEMORY.format(""), 2)
    sys.__excepthook__(kind, error, trace)


def _end(why: str, code: int) -> None:
    # Nothing is open or half done during imports, and Python's own shutdown would need modules that are half imported.
    os.write(2, f"cranfield: {why}\n".encode())
    os._exit(code)
