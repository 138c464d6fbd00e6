"""A balanced sample of the cells of a product that is too large for the budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._streams import stream

Cells = NDArray[np.int32]
IsValid = Callable[[Cells], NDArray[np.bool_]]
"""Returns which cells are possible."""

_PASSES = 60
_TRIES, _ROUNDS = 40, 5
# Stop when this many passes leave the cost above this share of it.
_PATIENCE, _SETTLED = 8, 0.99


def balanced_sample(
    sizes: Sequence[int],
    size: int,
    start: Sequence[int],
    is_valid: IsValid = lambda cells: np.ones(len(cells), dtype=np.bool_),
    *,
    beside: Sequence[Sequence[int]] = (),
    seed: int = 0,
) -> tuple[Cells, float]:
    """Draw cells of a product so that options, and pairs of options, are about equally frequent.

    Every column starts as a balanced list in random order: the counts of its options differ by at most 1. Swapping two
    entries of a column does not change these counts. Swaps first remove repeated and invalid cells, then make the
    counts of pairs of options of two decisions more equal. A cell that no swap can fix is left out, and the counts may
    then differ by more.

    Parameters
    ----------
    sizes
        The number of options of each decision.
    size
        The number of cells to draw: at least the number of options of any decision.
    start
        The first cell of the sample.
    is_valid
        Says which cells are possible.
    beside
        Further cells to include, unless they would prevent options from being equally frequent.
    seed
        Fixes the draw.

    Returns
    -------
    cells, imbalance
        The cells, starting with ``start``; and how uneven the pairs are: the root of the mean of (n_ij / e_ij − 1)²
        over all pairs of options of two decisions, where e_ij is the count if all were equal.

    Examples
    --------
    >>> cells, imbalance = balanced_sample([3, 4, 5, 6], 60, [0, 0, 0, 0], seed=1)
    >>> [np.ptp(np.bincount(column)).item() for column in cells.T], cells[0].tolist(), imbalance < 0.3
    ([0, 0, 0, 0], [0, 0, 0, 0], True)
    """
    rng = stream(seed, "audit", "sample")
    fixed = _fixed(sizes, size, start, beside, is_valid)
    cells = _mended(_columns(sizes, size, fixed, rng), sizes, is_valid, rng, len(fixed))
    cost = _cost(cells, sizes)
    costs = [cost]
    while len(costs) < _PASSES and not (len(costs) > _PATIENCE and cost > _SETTLED * costs[-_PATIENCE]):
        for column in range(len(sizes)):
            changed = _swapped(cells, column, sizes, is_valid, rng, len(fixed))
            if (changed_cost := _cost(changed, sizes)) < cost:
                cells, cost = changed, changed_cost
        costs.append(cost)
    if len(cells) < max(sizes):
        raise SettingError(f"only {len(cells)} of {size} drawn combinations are possible; raise the budget")
    return cells, imbalance_of(cells, sizes)


def imbalance_of(cells: Cells, sizes: Sequence[int]) -> float:
    """Return how uneven the pairs of options are: the root of the mean of (n_ij / e_ij − 1)²; 0 if all are equal."""
    squares = [
        np.square(_pairs(cells, a, b, sizes) * (sizes[a] * sizes[b] / len(cells)) - 1.0).ravel()
        for a, b in combinations(range(len(sizes)), 2)
    ]
    return float(np.sqrt(np.concatenate(squares).mean())) if squares else 0.0


def _fixed(
    sizes: Sequence[int], size: int, start: Sequence[int], beside: Sequence[Sequence[int]], is_valid: IsValid
) -> Cells:
    """Return the first cells of the sample: the start, and those in ``beside`` if no option becomes too frequent."""
    cells = np.array([start, *beside], dtype=np.int32)
    cells = cells[is_valid(cells)]
    most = [int(np.bincount(column, minlength=options).max()) for column, options in zip(cells.T, sizes)]
    fits = all(count <= size // options for count, options in zip(most, sizes))
    return cells if fits else cells[:1]


def _columns(sizes: Sequence[int], size: int, fixed: Cells, rng: np.random.Generator) -> Cells:
    """Return balanced columns in random order, whose first entries are those of the fixed cells."""
    cells = np.empty((size, len(sizes)), dtype=np.int32)
    cells[: len(fixed)] = fixed
    for column, options in enumerate(sizes):
        # Which options occur once more than others is random too.
        order = np.argsort(rng.random(options), kind="stable")
        counts = np.bincount(order[np.arange(size) % options], minlength=options)
        taken = np.bincount(fixed[:, column], minlength=options)
        values = np.repeat(np.arange(options), counts - taken)
        cells[len(fixed) :, column] = values[np.argsort(rng.random(len(values)), kind="stable")]
    return cells


def _pairs(cells: Cells, a: int, b: int, sizes: Sequence[int]) -> NDArray[np.int64]:
    counts = np.bincount(cells[:, a].astype(np.int64) * sizes[b] + cells[:, b], minlength=sizes[a] * sizes[b])
    return counts.reshape(sizes[a], sizes[b])


def _codes(cells: Cells, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return one number for each cell; NumPy raises an error if they need more than 64 bits."""
    return np.ravel_multi_index(tuple(cells.T), tuple(sizes)).astype(np.int64)


def _cost(cells: Cells, sizes: Sequence[int]) -> float:
    """Return how uneven the pairs of options are."""
    return sum(
        float(np.square(_pairs(cells, a, b, sizes) - len(cells) / (sizes[a] * sizes[b])).sum())
        for a, b in combinations(range(len(sizes)), 2)
    )


def _mended(cells: Cells, sizes: Sequence[int], is_valid: IsValid, rng: np.random.Generator, fixed: int) -> Cells:
    """Return the cells with repeated and invalid ones fixed by swaps; those that cannot be fixed are left out."""
    codes, valid = _codes(cells, sizes), is_valid(cells)
    counts = Counter(codes.tolist())
    for _ in range(_ROUNDS):
        for row in range(fixed, len(cells)):
            # Repeated cells are changed until only one is left.
            if not valid[row] or counts[int(codes[row])] > 1:
                _mend(row, cells, codes, valid, counts, sizes, is_valid, rng, fixed)
    first = np.zeros(len(cells), dtype=np.bool_)
    first[np.unique(codes, return_index=True)[1]] = True
    return cells[first & valid]


def _mend(
    row: int,
    cells: Cells,
    codes: NDArray[np.int64],
    valid: NDArray[np.bool_],
    counts: Counter[int],
    sizes: Sequence[int],
    is_valid: IsValid,
    rng: np.random.Generator,
    fixed: int,
) -> None:
    """Swap an option of a cell with another cell so that both are possible and new, in place, if possible."""
    columns = (rng.random(_TRIES) * len(sizes)).astype(int)
    others = fixed + (rng.random(_TRIES) * (len(cells) - fixed)).astype(int)
    mine, theirs = np.repeat(cells[[row]], _TRIES, axis=0), cells[others]
    tries = np.arange(_TRIES)
    mine[tries, columns], theirs[tries, columns] = theirs[tries, columns], mine[tries, columns]
    new = np.stack([_codes(mine, sizes), _codes(theirs, sizes)], axis=1)
    possible = is_valid(mine) & (is_valid(theirs) | ~valid[others]) & (new[:, 0] != new[:, 1]) & (others != row)
    for place in np.flatnonzero(possible).tolist():
        if counts[int(new[place, 0])] or counts[int(new[place, 1])]:
            continue
        both = [row, int(others[place])]
        counts.subtract(codes[both].tolist())
        cells[both] = mine[place], theirs[place]
        codes[both], valid[both] = new[place], is_valid(cells[both])
        counts.update(codes[both].tolist())
        return


def _swapped(
    cells: Cells, column: int, sizes: Sequence[int], is_valid: IsValid, rng: np.random.Generator, fixed: int
) -> Cells:
    """Return the cells after some swaps of two entries of a column, each of which would make the pairs more even."""
    rows = np.argsort(rng.random(len(cells) - fixed), kind="stable") + fixed
    half = len(rows) // 2
    first, second = rows[:half], rows[half : 2 * half]
    mine, theirs = cells[first], cells[second]
    options = mine[:, column].copy(), theirs[:, column].copy()
    gain = np.zeros(half)
    for other in range(len(sizes)):
        if other == column:
            continue
        counts = _pairs(cells, column, other, sizes)
        a, b = mine[:, other], theirs[:, other]
        # Swapping takes one from (mine, a) and (theirs, b) and adds one to (theirs, a) and (mine, b).
        change = counts[options[1], a] + counts[options[0], b] - counts[options[0], a] - counts[options[1], b] + 2
        gain -= np.where(a != b, change, 0)
    mine[:, column], theirs[:, column] = options[1], options[0]
    # Simultaneous swaps interfere with each other, so only some of the helpful ones are made.
    chosen = (gain > 0) & (options[0] != options[1]) & (rng.random(half) < 0.2)
    chosen[chosen] = is_valid(mine[chosen]) & is_valid(theirs[chosen])
    new = np.stack([_codes(mine, sizes), _codes(theirs, sizes)], axis=1)
    chosen &= ~np.isin(new, _codes(cells, sizes)).any(axis=1)
    repeated = np.ones(new.size, dtype=np.bool_)
    repeated[np.unique(new, return_index=True)[1]] = False
    chosen &= ~repeated.reshape(new.shape).any(axis=1)
    changed = cells.copy()
    changed[first[chosen]], changed[second[chosen]] = mine[chosen], theirs[chosen]
    return changed
