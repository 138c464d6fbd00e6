"""Training of systems, several at a time in worker processes."""

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NamedTuple

from cranfield import _checks as check
from cranfield._errors import CranfieldError, InputError
from cranfield._settings import available_memory, settings
from cranfield._terminal import progress
from cranfield.data import Ratings, check_ratings
from cranfield.recommenders import (
    CheckpointError,
    EpochModel,
    Model,
    Recommender,
    blas_threads,
    fit_takes,
    named_systems,
)

# Ctrl-C reaches every process of a terminal, but the parent stops the workers.
_WORKER = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); from cranfield.rankings.fitting import work; work()"
)
_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA")


class Done(NamedTuple):
    """A finished task."""

    place: int  # its position among the tasks
    result: Any
    seconds: float  # divided by the number of workers, so that they sum to the total time


def run_in_workers(function: Callable[..., Any], tasks: Sequence[tuple[str, Any]], jobs: int) -> Iterator[Done]:
    """Call ``function(name, thing)`` for each task, in ``jobs`` processes that share the threads of the settings.

    Each result is yielded as soon as it is available, in any order. An error in a worker is raised here. Leaving the
    iteration for any reason ends the workers. What is passed are objects of this package that can be pickled.
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
                "with jobs=1"
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
    if not issubclass(kind, CranfieldError):
        kind = next(parent for parent in kind.mro() if parent.__module__ == "builtins")
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


NOWHERE: Mapping[str, Path] = MappingProxyType({})
"""No checkpoint of any system."""
# Below this many training ratings most systems finish before a process has started.
_WORTH_A_PROCESS = 200_000


def fit_each(
    train: Ratings,
    systems: Any,
    *,
    validation: Ratings | None = None,
    whole: Ratings | None = None,
    checkpoints: Mapping[str, Path] = NOWHERE,
    seed: int = 0,
    jobs: int | None = None,
) -> Iterator[Done]:
    """Train systems in parallel, and yield each as soon as it is fitted; errors in the arguments are raised at once.

    The ``systems`` and ``jobs`` are those of `recommend`; ``seed`` is that of spelled systems that have none. Systems
    whose ``fit`` takes one get the ``validation`` part, and those that learn in epochs their file of ``checkpoints``,
    which are by name. With ``whole``, the training and validation parts together, that is what they learn from in the
    end: see `fitted`. Processes return what they learned as arrays (`Model.state`). Only a few systems are in memory at
    a time, even if the caller is slow. A result has the position of a system, the fitted system, and its share of the
    seconds.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
    >>> [(done.place, done.result.name) for done in fit_each(train, ["popularity", "knn"], jobs=1)]
    [(0, 'popularity'), (1, 'knn')]
    """
    check_ratings(train)
    if len(train) == 0:
        raise InputError("the training set holds no ratings", remedy="give some, or fix the split")
    named = named_systems(systems, check.whole("seed", seed, at_least=0))
    final = train if whole is None else whole  # other processes train only systems that take no validation part
    return each_system(
        "Training",
        named,
        movable(systems, named),
        jobs_for(train.n_items, len(train), len(named), jobs),
        here=lambda name, system: fitted(system, train, validation, checkpoints.get(name), whole),
        there=partial(_learned, final),
        back=lambda _, system, state: system.restore(state, final),
    )


def fitted(
    system: Recommender,
    train: Ratings,
    validation: Ratings | None = None,
    checkpoint: Path | None = None,
    whole: Ratings | None = None,
) -> Recommender:
    """Train one system in this process; with the ``whole`` of training and validation, on that in the end.

    A system that stops early is then trained twice: on the training part until the validation part stops it, and on the
    whole for as many epochs as were best. A system that takes a validation part but does not learn by epochs, and so
    cannot say when to stop without one, is trained once, on the training part alone. A ``checkpoint`` of another
    training is replaced.
    """
    if whole is None:
        return _trained(system, train, validation, checkpoint)
    if validation is None or not fit_takes(system, "validation"):
        return _trained(system, whole, None, checkpoint)
    if not isinstance(system, EpochModel):
        return _trained(system, train, validation, checkpoint)
    stopped = _trained(copy(system), train, validation, checkpoint)
    assert isinstance(stopped, EpochModel)
    system.epochs = stopped.best_epoch
    again = None if checkpoint is None else checkpoint.with_name(f"{checkpoint.stem}-refit.npz")
    learned = _trained(system, whole, None, again)
    if again is not None:
        again.unlink(missing_ok=True)
    return learned


def _trained(system: Recommender, train: Ratings, validation: Ratings | None, checkpoint: Path | None) -> Recommender:
    options: dict[str, Any] = {"validation": validation, "checkpoint": checkpoint}
    taken = {name: value for name, value in options.items() if value is not None and fit_takes(system, name)}
    # More BLAS threads change the last digits, and so the bytes. Our systems use the threads in their own loops.
    with blas_threads(1 if isinstance(system, Model) else settings.workers):
        try:
            system.fit(train, **taken)
        except CheckpointError:
            taken["checkpoint"].unlink(missing_ok=True)
            system.fit(train, **taken)
    return system


def _learned(train: Ratings, _: str, system: Model) -> Any:
    """Train a system in another process, and return what it learned."""
    return system.fit(train).state()


def each_system(
    what: str,
    named: Mapping[str, Recommender],
    moves: Sequence[bool],
    jobs: int,
    *,
    here: Callable[[str, Any], Any],
    there: Callable[[str, Any], Any],
    back: Callable[[str, Any, Any], Any],
) -> Iterator[Done]:
    """Process each system; those that can run in another process, ``jobs`` at a time.

    ``here`` computes the result in this process, from a name and a system. ``there`` is what another process computes,
    and ``back`` turns what it returns into the result. ``what`` is the text of the progress bar.
    """
    numbered = list(enumerate(named.items()))
    beside = [entry for entry, moved in zip(numbered, moves, strict=True) if moved and jobs > 1]
    if len(beside) > 1:
        # Systems that learn on one thread take longest, so they are started first.
        beside.sort(key=lambda entry: not getattr(entry[1][1], "one_thread", False))
        with progress(what, total=len(beside), unit="systems") as bar:
            for done in run_in_workers(there, [pair for _, pair in beside], jobs):
                place, (name, system) = beside[done.place]
                yield Done(place, back(name, system, done.result), done.seconds)
                bar.advance()
        taken = {place for place, _ in beside}
        numbered = [entry for entry in numbered if entry[0] not in taken]
    for place, (name, system) in numbered:
        start = time.perf_counter()
        result = here(name, system)
        yield Done(place, result, time.perf_counter() - start)


def movable(systems: Any, named: Mapping[str, Recommender]) -> list[bool]:
    """Return which systems another process can train: those of this package that are given by name."""
    if isinstance(systems, Mapping):
        spellings = list(systems.values())
    else:
        spellings = list(systems) if isinstance(systems, Sequence) and not isinstance(systems, str) else [systems]
    # A system that learns in epochs shows its progress and writes checkpoints, so it stays in this process.
    moves = bool(sys.executable)
    return [
        moves and isinstance(spelling, str) and of_this_package(system) and not fit_takes(system, "checkpoint")
        for spelling, system in zip(spellings, named.values(), strict=True)
    ]


def of_this_package(system: Recommender) -> bool:
    """Whether a system is part of cranfield, so that any process can create it."""
    return isinstance(system, Model) and type(system).__module__.partition(".")[0] == __name__.partition(".")[0]


def jobs_for(items: int, ratings: int, systems: int, jobs: int | None = None) -> int:
    """Return how many systems are trained at a time: ``jobs``, or one per thread if worthwhile and memory allows."""
    if jobs is not None:
        return check.whole("jobs", jobs)
    wanted = min(settings.workers, systems)
    if ratings < _WORTH_A_PROCESS or wanted < 2:
        return 1
    # The libraries, several copies of the ratings, and the three items × items matrices of the densest system.
    needed = 2**28 + 100 * ratings + 3 * 8 * items**2
    return max(1, int(min(wanted, available_memory() // needed)))
