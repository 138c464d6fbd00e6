"""The position of each rating in a random or temporal order of its user's (or item's) ratings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings

# Number of ratings sorted per block: it bounds the memory, and does not change the results.
_BLOCK = 1 << 20
# The longest span of times that fits in an int64 together with the number of a segment.
_SPAN = 1 << 42


def places(
    indptr: NDArray[np.int64], generator: np.random.Generator, times: NDArray[np.int64] | None = None
) -> NDArray[np.int32]:
    """Return each rating's position, 0, 1, 2, ..., in the order of its segment.

    Parameters
    ----------
    indptr
        Segment ``s`` is the slice ``indptr[s]:indptr[s + 1]``, such as a user's profile.
    generator
        Draws one key per rating, in order, so the result does not depend on the block size.
    times
        Sort by these, and by the keys only if times are equal. None: by the keys alone.

    Examples
    --------
    >>> places(np.array([0, 3, 3, 5]), np.random.default_rng(0), np.array([9, 7, 8, 2, 1])).tolist()
    [2, 0, 1, 1, 0]
    """
    place = np.empty(int(indptr[-1]), dtype=np.int32)
    for first, last in _blocks(indptr):
        start, stop = indptr[first], indptr[last]
        if start == stop:
            continue
        counts = np.diff(indptr[first : last + 1])
        keys = generator.random(stop - start)
        segment = np.repeat(np.arange(last - first, dtype=np.int32), counts)
        # Segment plus key sorts by segment and then by key in one pass. A block has few enough segments to leave at
        # least 32 bits for a key.
        keys += segment
        order = _order(keys)
        if times is not None:
            order = order[np.argsort(_stamps(segment, times[start:stop])[order], kind="stable")]
        # The order permutes within segments only, so sorted position j is in the segment of rating j.
        begins = np.repeat((indptr[first:last] - start).astype(np.int32), counts)
        place[start:stop][order] = np.arange(stop - start, dtype=np.int32) - begins
    return place


def item_places(
    ratings: Ratings, generator: np.random.Generator, times: NDArray[np.int64] | None = None
) -> NDArray[np.int32]:
    """Return each rating's position among its item's ratings: in the order of ``times``, or else in random order."""
    by_item = ratings.matrix(np.arange(len(ratings), dtype=np.int32)).tocsc()
    place = np.empty(len(ratings), dtype=np.int32)
    place[by_item.data] = places(by_item.indptr, generator, None if times is None else times[by_item.data])
    return place


def _order(keys: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the stable order of keys that hardly ever tie: by the faster unstable sort, unless two of them tie."""
    order: NDArray[np.int64] = np.argsort(keys)
    ascending = keys[order]
    return np.argsort(keys, kind="stable") if (ascending[1:] == ascending[:-1]).any() else order


def _stamps(segment: NDArray[np.int32], times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return one number for each rating that ascends by segment and then by time."""
    oldest, newest = int(times.min()), int(times.max())
    if newest - oldest >= _SPAN:
        times = np.unique(times, return_inverse=True)[1]
        oldest, newest = 0, len(times)
    return segment.astype(np.int64) * (newest - oldest + 1) + (times - oldest)


def _blocks(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield runs of segments with at most `_BLOCK` segments and at most `_BLOCK` ratings, unless one alone has more."""
    first, segments = 0, len(indptr) - 1
    while first < segments:
        last = int(np.searchsorted(indptr, indptr[first] + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), first + _BLOCK, segments)
        yield first, last
        first = last
