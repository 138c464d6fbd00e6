"""Where each rating is in a random or temporal order of its user's (or item's) ratings."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings

# Ratings that are ordered at a time: it bounds the memory, and changes no result.
_BLOCK = 1 << 20
# The longest span of times that fits in an int64 beside the number of a segment.
_SPAN = 1 << 42


def places(
    indptr: NDArray[np.int64], generator: np.random.Generator, times: NDArray[np.int64] | None = None
) -> NDArray[np.int32]:
    """Return each rating's place, 0, 1, 2, ..., in the order of its segment.

    Parameters
    ----------
    indptr
        Segment ``s`` is the slice ``indptr[s]:indptr[s + 1]``: a user's profile, say.
    generator
        Draws one key for each rating, in their order; so the result does not depend on the size of the blocks.
    times
        Order by these, and by the keys only where they are equal. None: by the keys alone.

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
        # Segment plus key sorts by segment and then by key, in one pass; a block holds few enough segments for a key to
        # keep 32 bits of its own at the least.
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
    """Return each rating's place among its item's ratings: in the order of ``times``, or else in a random one."""
    by_item = ratings.matrix(np.arange(len(ratings), dtype=np.int32)).tocsc()
    place = np.empty(len(ratings), dtype=np.int32)
    place[by_item.data] = places(by_item.indptr, generator, None if times is None else times[by_item.data])
    return place


def _order(keys: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the stable order of keys that hardly ever tie: the quick sort, unless two of them do."""
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
    """Cut the segments into runs of at most `_BLOCK` segments and, unless one alone has more, `_BLOCK` ratings."""
    first, segments = 0, len(indptr) - 1
    while first < segments:
        last = int(np.searchsorted(indptr, indptr[first] + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), first + _BLOCK, segments)
        yield first, last
        first = last
