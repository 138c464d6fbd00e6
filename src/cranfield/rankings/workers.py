"""Several systems at a time, each in a process of its own.

Threads would not do: libraries that compute have settings for the whole process (how many threads BLAS has), and some
loops must not run twice in one process. A worker is started as a program, not forked and not by `multiprocessing`, so
that a script needs no guard around its main part. It is sent what it needs through its standard input, sends back
arrays, writes no file, and ends when that input does: when its parent is done, or dead.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

from cranfield._errors import CranfieldError
from cranfield._settings import settings

# Ctrl-C reaches every process of a terminal; it is the parent who stops the workers.
_WORKER = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from cranfield.rankings.workers import work; work()"
)
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")


class Done(NamedTuple):
    """A task that was done: its place among the tasks, what came of it, and its share of the seconds.

    What several workers do in a second counts as a fraction of it for each, so that the shares sum up to the time.
    """

    place: int
    result: Any
    seconds: float


def run_in_workers(function: Callable[..., Any], tasks: Sequence[tuple[str, Any]], jobs: int) -> Iterator[Done]:
    """Call ``function(name, thing)`` for each task, in ``jobs`` processes that share the threads of the settings.

    Each result is given as soon as it is there, in whatever order. An error in a worker is raised here; leaving the
    iteration, for an error, an interrupt or of one's own will, ends the workers.

    Parameters
    ----------
    function, tasks
        What can be pickled, of this package.
    """
    waiting: queue.SimpleQueue[tuple[int, str, Any]] = queue.SimpleQueue()
    for place, (name, thing) in enumerate(tasks):
        waiting.put((place, name, thing))
    jobs = min(jobs, len(tasks))
    # A result may be a large model: a worker waits until there is room for it.
    done: queue.Queue[Done | BaseException] = queue.Queue(maxsize=jobs)
    threads = max(1, settings.workers // jobs)
    message = _packed((function, threads))
    workers = [_started(threads) for _ in range(jobs)]
    clerks = [
        threading.Thread(target=_attend, args=(process, message, waiting, done), daemon=True) for process in workers
    ]
    try:
        for clerk in clerks:
            clerk.start()
        for _ in tasks:
            result = done.get()
            if isinstance(result, BaseException):
                raise result
            yield result._replace(seconds=result.seconds / jobs)
    finally:
        for worker in workers:
            worker.kill()
        for clerk, worker in zip(clerks, workers):
            while clerk.is_alive():
                with suppress(queue.Empty):  # a clerk may be waiting for room
                    done.get_nowait()
                clerk.join(0.01)
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                with suppress(OSError):  # what was not sent yet cannot be
                    pipe.close()  # type: ignore[union-attr]


def _started(threads: int) -> subprocess.Popen[bytes]:
    """Start a worker whose libraries have so many threads."""
    limits = {f"{library}_NUM_THREADS": str(threads) for library in _LIBRARIES}
    # What can be imported here can be there.
    paths = {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **limits, "POLARS_MAX_THREADS": str(threads), **paths},
    )


def _attend(
    worker: subprocess.Popen[bytes],
    message: bytes,
    waiting: queue.SimpleQueue[tuple[int, str, Any]],
    done: queue.Queue[Done | BaseException],
) -> None:
    """Give a worker one task after another, and pass on what comes back."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    name = "the first system"
    try:
        worker.stdin.write(message)
        while True:
            place, name, thing = waiting.get_nowait()
            worker.stdin.write(_packed((name, thing)))
            worker.stdin.flush()
            error, result, seconds = pickle.load(worker.stdout)
            done.put(Done(place, result, seconds) if error is None else _raised(*error))
    except queue.Empty:
        return
    except (OSError, EOFError, pickle.UnpicklingError):
        code = worker.wait()
        how = f"signal {-code}" if code < 0 else f"code {code}"
        done.put(
            CranfieldError(
                f"the process that was to train {name} ended with {how}; if memory is short, run one system at a time "
                "with jobs=1 (--jobs 1)"
            )
        )


def work() -> None:
    """Be a worker: take the function, then task after task, from standard input; write each result to the output."""
    source = sys.stdin.buffer
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not come between
    function, settings.threads = pickle.load(source)
    settings.quiet = True
    for name, thing in _received(source):
        start = time.perf_counter()
        error, result = None, None
        try:
            result = function(name, thing)
        except Exception as raised:
            error = type(raised), str(raised), traceback.format_exc()
        sink.write(_packed((error, result, time.perf_counter() - start)))
        sink.flush()


def _received(source: IO[bytes]) -> Iterator[Any]:
    """Give what is sent; the end of it ends the process, in the midst of work too."""
    came: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def listen() -> None:
        with suppress(EOFError, pickle.UnpicklingError):
            while True:
                came.put(pickle.load(source))
        os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield came.get()


def _raised(kind: type[BaseException], text: str, where: str) -> BaseException:
    """Return the error of a worker; a mistake of the user stays the one line that it is."""
    # Only the built-in kind of an error of a library can be made without knowing what the library makes it of.
    kind = (
        kind
        if issubclass(kind, CranfieldError)
        else next(parent for parent in kind.mro() if parent.__module__ == "builtins")
    )
    error = kind.__new__(kind, text)
    error.args = (text,)
    if not isinstance(error, CranfieldError):
        error.add_note(f"in a process that worked beside this one:\n{where}")
    return error


def _read_only(content: dict[str, Any]) -> MappingProxyType[str, Any]:
    return MappingProxyType(content)


class _Pickler(pickle.Pickler):
    # The settings of a step are read-only, in a way that pickle does not know.
    dispatch_table = {MappingProxyType: lambda shown: (_read_only, (dict(shown),))}  # noqa: RUF012


def _packed(message: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(message)
    return buffer.getvalue()
