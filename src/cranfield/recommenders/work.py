"""Work in blocks, on as many threads as the settings allow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

from numpy.typing import NDArray

from cranfield._errors import CranfieldError, MissingExtraError
from cranfield._settings import available_memory, settings
from cranfield._terminal import Progress, progress

Argument = TypeVar("Argument")
Answered = TypeVar("Answered")
Array = TypeVar("Array", bound=NDArray[Any])

# Maximum number of scores per block: 32 MB in double precision. Each thread holds a few blocks.
_CELLS = 1 << 22

# Minimum number of ratings per thread; below, starting the thread in every pass takes longer than its work.
_RATINGS_A_THREAD = 5_000

# Below this many operations SciPy or NumPy is faster than loading the compiled kernels.
_WORTH_COMPILING = 1 << 21


def blocks(rows: int, width: int) -> list[slice]:
    """Cut ``rows`` rows of ``width`` cells into blocks that fit in memory."""
    height = max(1, min(_CELLS // max(width, 1), 512))
    return [slice(start, min(start + height, rows)) for start in range(0, rows, height)]


def each(
    function: Callable[[slice], Answered], pieces: Sequence[slice], what: str, *, threads: int | None = None
) -> list[Answered]:
    """Call ``function`` on each block, in threads, and return the results in the order of the blocks."""
    with progress(what, total=len(pieces), unit="blocks") as bar:
        return in_threads(function, pieces, bar, threads=threads)


def in_threads(
    function: Callable[[Argument], Answered],
    arguments: Sequence[Argument],
    bar: Progress | None = None,
    *,
    threads: int | None = None,
) -> list[Answered]:
    """Call ``function`` on each argument, in as many threads as the settings allow; return the results in order.

    With several threads, BLAS uses one in each. When a call fails, the remaining calls are not started.
    """
    threads = settings.workers if threads is None else threads
    results = []
    if threads == 1 or len(arguments) < 2:
        for argument in arguments:
            results.append(function(argument))
            if bar is not None:
                bar.advance()
        return results
    with blas_threads(1), ThreadPoolExecutor(threads) as pool:
        try:
            for result in pool.map(function, arguments):
                results.append(result)
                if bar is not None:
                    bar.advance()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return results


def one_ahead(function: Callable[[int], Answered], arguments: Sequence[int]) -> Iterator[Answered]:
    """Yield the results in order, computing the next one in a second thread if there is one."""
    if settings.workers == 1:
        yield from map(function, arguments)
        return
    with ThreadPoolExecutor(1) as other:
        coming: Future[Answered] | None = None
        for argument in arguments:
            present, coming = coming, other.submit(function, argument)
            if present is not None:
                yield present.result()
        if coming is not None:
            yield coming.result()


@contextmanager
def blas_threads(threads: int) -> Iterator[None]:
    """Limit BLAS to a number of threads."""
    with _blas(len(sys.modules)).limit(limits=threads):
        yield


@lru_cache(maxsize=1)
def _blas(_modules: int) -> Any:
    """Return the controller of the loaded BLAS libraries, searched again only if the number of modules changes."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def compiled_loops(system: str) -> Any:
    """Return the module of compiled loops, or say what to install."""
    try:
        import numba  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(system, library="numba", extra="recommend") from error
    from cranfield.recommenders import _loops

    return _loops


def over_rows(loop: Callable[..., None], rows: range, ratings: int, *arguments: Any) -> None:
    """Call a compiled loop on parts of the rows, in as many threads as the settings allow and the ratings are worth."""
    threads = max(1, min(settings.workers, ratings // _RATINGS_A_THREAD))
    # Rows take different times, so there are more parts than threads.
    parts = 1 if threads == 1 else 4 * threads
    bounds = [rows.start + len(rows) * part // parts for part in range(parts + 1)]
    in_threads(lambda part: loop(*part, *arguments), list(pairwise(bounds)), threads=threads)


def read_only(array: Array) -> Array:
    """Return a read-only view; a loop would be compiled again for writeable arrays."""
    view = array.view()
    view.flags.writeable = False
    return view


def kernels(operations: float, *, if_loaded: bool = False) -> Any | None:
    """Return the compiled kernels if the number of operations is worth loading them; None if not, or without numba.

    With ``if_loaded``, also if numba is already loaded: for results that are the same without them, to the last bit.
    """
    if operations < _WORTH_COMPILING and not (if_loaded and "numba" in sys.modules):
        return None
    try:
        from cranfield.recommenders import _loops
    except ImportError:
        return None
    return _loops


def need_memory(system: str, n_items: int, copies: int, remedy: str) -> None:
    """Raise an error at once if dense items × items matrices cannot fit into the memory of this machine."""
    needed, free = copies * 8 * n_items**2, available_memory()
    if needed > free:
        raise CranfieldError(
            f"{system} needs {needed / 2**30:.1f} GiB of memory for a dense matrix of {n_items:,} × {n_items:,} items, "
            f"and {free / 2**30:.1f} GiB are free; {remedy}"
        )
