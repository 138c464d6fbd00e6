"""Splits by their spelling, such as ``leave_out(l=1, which=last)``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from cranfield._registry import Registry
from cranfield.data import Ratings
from cranfield.splits.split import Split

registry: Registry[Callable[..., Any]] = Registry("split")
"""The splits that can be spelled; a new one is a function with ``@registry.register`` above it."""


def apply(ratings: Ratings, method: str, *, seed: int = 0, validation: float | None = None) -> Sequence[Split]:
    """Split by a spelled method; the result is always a sequence, of one split unless the method makes folds.

    Parameters
    ----------
    ratings
        The ratings to split.
    method
        A spelling such as ``"random(train=0.8)"`` or ``"k_fold(k=5)"``.
    seed
        Seed of the methods that draw at random.
    validation
        The size of the validation part, in the method's own unit; None for none.

    Examples
    --------
    >>> ratings = Ratings.of([1] * 10, range(10))
    >>> apply(ratings, "random(train=0.7, exact=true)", seed=7)
    [Split(random: train 7, test 3)]
    """
    splits: Split | Sequence[Split] = registry.call(method, ratings, seed=seed, validation=validation)
    return [splits] if isinstance(splits, Split) else splits
