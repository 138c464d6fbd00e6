"""Whether the way of aggregating over datasets decides which system is first."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cranfield.across.effects import Floats
from cranfield.across.ranks import ranks_of
from cranfield.facts import across as across_facts

# The rules by which a system that does not lead can decide who does.
_OF_ALL = ("rank", "wins", "copeland")
_MOST_DATASETS = 12  # with more there are too many subsets
_FEWEST_IN_A_SUBSET = 3
_SAME = 1e-9  # scores closer than this are equal


def rule_scores(
    values: Floats, rule: str, subsets: NDArray[np.bool_] | None = None, *, lower_is_better: bool = False
) -> Floats:
    """Return the score of each system (rows of values) by a rule, for each subset of the datasets; more is better.

    ``mean``; ``geometric``: the geometric mean of the ratios to the best, 0 if one of them is 0; ``rank``: the mean
    rank, with a minus; ``wins``: the number of datasets on which it is best, shared where several are; ``copeland``:
    the number of systems that it beats on more datasets than it loses, ties ½.
    """
    k = values.shape[1]
    chosen = (np.ones((1, k)) if subsets is None else subsets).astype(np.float64)
    sign = -1.0 if lower_is_better else 1.0
    if rule == "copeland":
        better = np.sign(sign * (values[:, None] - values[None]))
        majorities = np.sign(np.rint(np.einsum("ijk,sk->sij", better, chosen)))
        return np.asarray(((majorities > 0) + (majorities == 0) / 2).sum(axis=2) - 0.5)
    if rule == "mean":
        of_dataset = sign * values
    elif rule == "geometric":
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = sign * np.log(np.where(values < 0, np.nan, values))
            of_dataset = np.nan_to_num(logs - logs.max(axis=0), nan=-np.inf, neginf=-np.inf)
    elif rule == "rank":
        of_dataset = -ranks_of(values, lower_is_better=lower_is_better)
    else:
        best = sign * values >= (sign * values).max(axis=0)
        return chosen @ (best / best.sum(axis=0)).T
    # Zero times an infinite logarithm is no number, so it is put in afterwards.
    finite = np.where(np.isfinite(of_dataset), of_dataset, 0.0)
    averages = chosen @ finite.T / chosen.sum(axis=1)[:, None]
    lost = chosen @ np.isinf(of_dataset).T > 0
    return np.where(lost, 0.0, np.exp(averages)) if rule == "geometric" else averages


def _leaders(scores: Floats) -> NDArray[np.bool_]:
    """Return which systems have the best score, for each row."""
    best = scores.max(axis=1, keepdims=True)
    return np.asarray(scores >= best - _SAME * np.maximum(np.abs(best), 1e-300))


def rules_of(
    systems: tuple[str, ...], values: Floats, *, lower_is_better: bool = False
) -> list[across_facts.LeaderByRule]:
    """Return who leads by each rule: over all datasets, without one, in subsets, and without a losing system.

    The geometric mean is left out if a value is negative, or 0 where lower is better.
    """
    m, k = values.shape
    if m < 2 or k < 2:
        return []
    without = ~np.eye(k, dtype=bool)
    sizes = range(_FEWEST_IN_A_SUBSET, k + 1) if k <= _MOST_DATASETS else ()
    chosen = [[d in subset for d in range(k)] for size in sizes for subset in combinations(range(k), size)]
    subsets = np.array(chosen, dtype=bool).reshape(-1, k)
    rules = []
    for rule in across_facts.RULES:
        if rule == "geometric" and ((values < 0).any() or (lower_is_better and (values == 0).any())):
            continue

        def led(of: Floats, tables: NDArray[np.bool_] | None = None, rule: str = rule) -> NDArray[np.bool_]:
            return _leaders(rule_scores(of, rule, tables, lower_is_better=lower_is_better))

        scores, ahead = rule_scores(values, rule, lower_is_better=lower_is_better)[0], led(values)[0]
        decisive = []
        for behind in np.flatnonzero(~ahead) if rule in _OF_ALL and m > 2 else ():
            if (led(np.delete(values, behind, axis=0))[0] != np.delete(ahead, behind)).any():
                decisive.append(systems[behind])
        printed = np.abs(scores) if rule == "rank" or (rule == "mean" and lower_is_better) else scores
        rules.append(
            across_facts.LeaderByRule(
                rule,
                tuple(system for system, leads in zip(systems, ahead) if leads),
                tuple(printed.tolist()),
                int((led(values, without) == ahead).all(axis=1).sum()),
                k,
                int((led(values, subsets) == ahead).all(axis=1).sum()),
                len(subsets),
                tuple(decisive),
            )
        )
    return rules
