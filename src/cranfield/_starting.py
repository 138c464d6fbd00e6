"""The command line while it is being imported and while it runs: Ctrl-C and lack of memory end it with one line.

Rust aborts a process that runs out of memory: Python cannot handle that, and the user sees a core dump. If the shell
limits memory (``ulimit -v``), the command therefore runs in a child process. Its parent, which uses almost no memory,
passes on what the child writes to standard error and says in one line why it ended. Without a limit nothing is watched.

If the limit is too low even for the threads of Polars and NumPy, their libraries crash, or wait forever for a thread
that never started. Such a limit is refused at once. This module imports nothing of the package.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
from types import FrameType, TracebackType

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
    limit, least = memory_limit(), least_memory()
    if limit is None:
        return
    if limit < least:
        _end(TOO_LITTLE_MEMORY.format(limit / 2**30, least / 2**30), 2)
    watch(SHORT_OF_MEMORY.format(""))


def release() -> None:
    """Leave Ctrl-C and errors to the command line, which is now loaded."""
    if signal.getsignal(signal.SIGINT) is _stopped:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.excepthook = sys.__excepthook__


def is_short_of_memory(error: BaseException) -> bool:
    """Whether an error means that memory has run out; not only `MemoryError` does."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or says_short_of_memory(str(error))


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


_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if sys.platform == "linux" else ()
_WAIT_SECONDS = 0.05
# After one of these, the child may be writing many lines about its own crash.
_LAST_WORDS = (
    *(b"memory allocation of", b"<jemalloc>", b"panicked at", b"called `Result"),
    *(b"OpenBLAS", b"Fatal ", b"Traceback ("),
)
# What the system's loader, Python's threads and Rust's libraries say when memory has run out.
_SHORT = (
    r"(?i)allocat|out of memory|failed to map segment|can't start new thread|capacity overflow"
    r"|ThreadPoolBuildError|os error 1[12]\b|Resource temporarily unavailable|MemoryError"
    r"|error return without exception set"
)
_PR_SET_PDEATHSIG = 1
_GIB = 1 << 30


def memory_limit() -> int | None:
    """Return how many bytes this process may use; None if there is no limit."""
    if sys.platform != "linux":
        return None
    import resource

    limits = [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((bytes for bytes in limits if bytes != resource.RLIM_INFINITY), default=None)


def least_memory() -> int:
    """Return how many bytes of address space the libraries need before any data are read; most of it is never used.

    Measured while a small file was described, with one thread and with two: 1.10 and 1.35 GiB.
    """
    return int((1.1 + 0.2 * (os.cpu_count() or 1)) * _GIB)


def says_short_of_memory(words: str) -> bool:
    """Whether a message from Python, Rust or the system's loader says that memory has run out."""
    # Ctrl-C shows a traceback until the guard is set up, so imports that can wait come after it.
    import re

    return bool(re.search(_SHORT, words))


def watch(short_of_memory: str) -> None:
    """Continue in a child process; the parent ends as the child does, with one line if memory ran out."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    reading, writing = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(writing, 2)
        os.close(writing)
        _end_with(parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        return
    os.close(writing)
    status, held = _pass_on(reading, child)
    _end_as(status, held, short_of_memory)


def _end_with(parent: int) -> None:
    """Let the child end when its parent is killed, because a killed parent cannot tell it to."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _pass_on(reading: int, child: int) -> tuple[int, bytes]:
    """Pass signals to the child and its output to standard error; return its status and its last output."""
    held, ended, status = b"", 0, 0
    while not ended:
        _forward_signals(child)
        # The status comes first, so that everything written before the end is still read.
        ended, status = os.waitpid(child, os.WNOHANG)
        while select.select([reading], [], [], 0 if ended else _WAIT_SECONDS)[0]:
            words = os.read(reading, 1 << 16)
            if not words:
                ended, status = (ended, status) if ended else os.waitpid(child, 0)
                break
            held = _write_or_hold(held, words)
    return status, held


def _write_or_hold(held: bytes, words: bytes) -> bytes:
    if not held:
        starts = [start for start in map(words.find, _LAST_WORDS) if start >= 0]
        # A panic of Rust starts with a blank line and the name of the thread.
        start = words.rfind(b"\n", 0, min(starts)) + 1 if starts else len(words)
        os.write(2, words[:start])
        words = words[start:]
    return held + words


def _forward_signals(child: int) -> None:
    """Forward signals sent to this process alone; keys pressed at the terminal reach the child directly."""
    while (received := signal.sigtimedwait(_FORWARDED, 0)) is not None:
        if received.si_code <= 0:
            os.kill(child, received.si_signo)


def _end_as(status: int, held: bytes, short_of_memory: str) -> None:
    code = os.waitstatus_to_exitcode(status)
    crashed = -code in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP)
    own_line = [line for line in held.splitlines(keepends=True) if line.startswith(b"cranfield: ")]
    if code > 0 and own_line:
        held = own_line[-1]
    elif crashed or (code > 0 and says_short_of_memory(held.decode(errors="replace"))):
        code, held = 2, f"cranfield: {short_of_memory}\n".encode()
    os.write(2, held)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [-code])
        os.kill(os.getpid(), -code)
    os._exit(code)
