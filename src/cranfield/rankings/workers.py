"""Worker processes that train several systems in parallel.

Threads do not work here: numerical libraries have settings for the whole process, such as the number of BLAS threads,
and some loops must not run twice in one process. A worker is started as a program, not forked and not by
`multiprocessing`, so that a script needs no ``__main__`` guard. It receives its tasks through standard input, returns
arrays, writes no files, and exits when its input ends, because its parent has finished or died.
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

# Ctrl-C reaches every process of a terminal, but the parent stops the workers.
_WORKER = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from cranfield.rankings.workers import work; work()"
)
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")


class Done(NamedTuple):
    """A finished task: its position among the tasks, its result, and its share of the seconds.

    The seconds of a task are divided by the number of workers, so that the shares sum to the total time.
    """

    place: int
    result: Any
    seconds: float


def run_in_workers(function: Callable[..., Any], tasks: Sequence[tuple[str, Any]], jobs: int) -> Iterator[Done]:
    """Call ``function(name, thing)`` for each task, in ``jobs`` processes that share the threads of the settings.

    Each result is yielded as soon as it is available, in any order. An error in a worker is raised here. Leaving the
    iteration for any reason ends the workers.

    Parameters
    ----------
    function, tasks
        Objects of this package that can be pickled.
    """
    waiting: queue.SimpleQueue[tuple[int, str, Any]] = queue.SimpleQueue()
    for place, (name, thing) in enumerate(tasks):
        waiting.put((place, name, thing))
    jobs = min(jobs, len(tasks))
    # Results may be large models, so the queue is bounded and workers wait for a free place.
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
                with suppress(queue.Empty):  # a clerk may be waiting for a free place in the queue
                    done.get_nowait()
                clerk.join(0.01)
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                with suppress(OSError):  # unsent data cannot be flushed to a dead worker
                    pipe.close()  # type: ignore[union-attr]


def _started(threads: int) -> subprocess.Popen[bytes]:
    """Start a worker whose libraries use this many threads."""
    limits = {f"{library}_NUM_THREADS": str(threads) for library in _LIBRARIES}
    # The worker can import the same modules as this process.
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
    """Send a worker one task after another, and forward the results."""
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
    """Run as a worker: read the function and then tasks from standard input, and write each result to the output."""
    source = sys.stdin.buffer
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints of libraries must not get into the results
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
    """Yield the messages; the end of input exits the process, even during a task."""
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
    """Return the error of a worker; a user's mistake stays a one-line message."""
    # Errors of other libraries become their built-in base class, since their constructors are unknown.
    kind = (
        kind
        if issubclass(kind, CranfieldError)
        else next(parent for parent in kind.mro() if parent.__module__ == "builtins")
    )
    error = kind.__new__(kind, text)
    error.args = (text,)
    if not isinstance(error, CranfieldError):
        error.add_note(f"in a worker process:\n{where}")
    return error


def _read_only(content: dict[str, Any]) -> MappingProxyType[str, Any]:
    return MappingProxyType(content)


class _Pickler(pickle.Pickler):
    # The settings of a step are a read-only mapping, which pickle does not support.
    dispatch_table = {MappingProxyType: lambda shown: (_read_only, (dict(shown),))}  # noqa: RUF012


def _packed(message: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=5).dump(message)
    return buffer.getvalue()
