"""Randomness: one seed, spawned into independent streams by name; and numbers by id, the same wherever drawn."""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl
from numpy.typing import NDArray

Keys = NDArray[np.uint64]


def stream(seed: int, *names: str | int) -> np.random.Generator:
    """Return the random stream of ``names`` under ``seed``.

    Streams with different names are independent, so adding a step to an experiment never changes what the other
    steps draw, and no result depends on how many threads ran or in which order.

    Examples
    --------
    >>> a, b = stream(7, "split"), stream(7, "split")
    >>> bool(a.random() == b.random())
    True
    >>> bool(stream(7, "split").random() == stream(7, "targets").random())
    False
    """
    path = "\x1f".join(str(name) for name in names)
    words = np.frombuffer(hashlib.sha256(path.encode()).digest(), dtype="<u4")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *words.tolist()])))


# The constants of splitmix64 (Steele, Lea and Flood 2014), whose output passes the usual tests of randomness.
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _mixed(keys: Keys) -> Keys:
    """Return numbers in which each bit depends on every bit of the key."""
    with np.errstate(over="ignore"):
        keys = keys + _STEP
        keys = (keys ^ (keys >> np.uint64(30))) * _FIRST
        keys = (keys ^ (keys >> np.uint64(27))) * _SECOND
    return keys ^ (keys >> np.uint64(31))


def id_keys(ids: pl.Series) -> Keys:
    """Return a key for each id: the same in every file, on every machine and in every version."""
    if ids.dtype.is_integer() and "128" not in str(ids.dtype):
        values = ids.to_numpy()
        return _mixed(values.astype(np.uint64) if values.dtype.kind == "u" else values.astype(np.int64).view(np.uint64))
    text = ids.cast(pl.String) if ids.dtype != pl.Binary else ids.bin.encode("hex")
    words = [value.encode() for value in text.to_list()]
    width = -(-max(map(len, words), default=1) // 8) or 1
    # The bytes of each id as whole words, padded with zeros; the length tells "a" from "a\0".
    table = np.array(words, dtype=f"S{8 * width}").view("<u8").reshape(-1, width)
    keys = np.fromiter(map(len, words), dtype=np.uint64, count=len(words))
    for column in table.T:
        keys = _mixed(keys ^ column)
    return keys


MOST_BLOCKS = 10_000
"""Maximum number of blocks. More users than this are put into random blocks, which are drawn or flipped instead."""


def user_blocks(keys: Keys, count: int, seed: int, *names: str | int) -> NDArray[np.intp]:
    """Return the block of each user, one of ``count``, by a hash of the user's key, the seed and the names.

    The cost of drawing blocks does not grow with the users, and the blocks do not depend on who else is measured.
    """
    path = "\x1f".join(map(str, (seed, *names)))
    salt = np.frombuffer(hashlib.sha256(path.encode()).digest()[:8], dtype="<u8")[0]
    return (_mixed(_mixed(np.asarray(keys, dtype=np.uint64)) ^ salt) % np.uint64(count)).astype(np.intp)
