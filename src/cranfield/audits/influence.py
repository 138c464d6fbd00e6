"""Which decisions matter: the variance of an answer over the cells, divided among the decisions.

An answer y is a number per cell: d_z, or the sign of the lead. Under the weights of the options,

- a full product of options has an exact functional ANOVA: V = Σ V_S over all sets S of decisions, where V_S is the
  variance of the part of y that only all decisions of S together explain. The *main* influence of a decision is V_{i},
  its *total* influence the sum of V_S over all S that contain i, and its *Shapley* influence the sum of V_S/|S| over
  them;
- other complete grids (some combinations are invalid, so decisions depend on each other) have Shapley influences of
  c(S) = Var(E[y | S]) by enumeration of all S; main is c({i}) and total V − c(all but i);
- for a sample of the cells, least squares on main effects and, if the sample is large enough, on pairs is used; each
  estimate has a standard error, and what the model does not explain is shown as the rest.

All are shares of V. Shapley influences sum to 1 (to 1 without the rest for a sample); main influences to at most 1 in a
product.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from cranfield._errors import SettingError
from cranfield.audits.contributions import Leads, Resampled, interval
from cranfield.audits.grid import Floats, Grid
from cranfield.recommenders import blas_threads

ANSWERS = ("d_z", "sign")  # the answers whose variance is decomposed by decision
_MOST_DECISIONS = 16  # 2^n sets of decisions are enumerated if the grid is not a product


@dataclass(frozen=True, eq=False)
class Influence:
    """The shares of the variance of several answers; the first row is the observed one, the others are resamples."""

    method: str  # "anova", "enumeration" or "least squares"
    variance: Floats  # of each answer over the cells: V
    main: Floats  # answers × decisions
    total: Floats
    shapley: Floats
    pairs: dict[tuple[int, int], Floats]  # the share of the interaction of two decisions; empty for "enumeration"
    rest: Floats  # the share of each answer that is not explained; 0 unless by least squares
    error: Floats | None = None  # of the observed Shapley shares, from sampling cells; by least squares only


def influences(grid: Grid, answers: Floats) -> Influence:
    """Return the influence of every opened decision on some answers, which are answers × cells."""
    answers = np.atleast_2d(np.asarray(answers, dtype=np.float64))
    method = _anova if grid.is_product else _enumeration if grid.complete else _least_squares
    with blas_threads(1):  # so that results do not depend on the number of threads
        return method(grid, answers)


def _shares(parts: Floats, variance: Floats) -> Floats:
    """Return parts of the variance as shares; 0 if the variance is 0."""
    wide = variance.reshape(variance.shape + (1,) * (parts.ndim - variance.ndim))
    return np.divide(parts, wide, out=np.zeros(parts.shape), where=wide > 0)


def anova_components(grid: Grid, answers: Floats) -> Floats:
    """Return answers × sets: the variance component of every set of decisions; decision i is bit i of the index.

    Along each decision, the answers are expressed in a basis that is orthonormal under the options' weights and whose
    first vector is constant. Each squared coefficient belongs to the decisions whose vector is not constant.
    """
    order = np.lexsort(grid.cells.T[::-1])
    shape = tuple(int(size) for size in grid.sizes)
    coefficients = answers[:, order].reshape(-1, *shape)
    for place, decision in enumerate(grid.varied):
        moved = np.moveaxis(coefficients, place + 1, -1) @ _basis(decision.shares)
        coefficients = np.moveaxis(moved, -1, place + 1)
    held = sum((number > 0).astype(np.int64) << place for place, number in enumerate(np.indices(shape)))
    components = np.zeros((len(answers), 1 << len(shape)))
    squares = np.square(coefficients.reshape(len(answers), -1))
    sets = np.asarray(held).ravel()
    for row, own in zip(components, squares):
        row[:] = np.bincount(sets, weights=own, minlength=len(row))
    components[:, 0] = 0.0
    return components


def _basis(weights: Floats) -> Floats:
    """Return options × options: y @ basis are the coefficients of y, the first of which is its weighted mean."""
    roots = np.sqrt(weights)
    start = np.column_stack([roots, np.eye(len(roots))[:, 1:]])
    vectors = np.linalg.qr(start)[0]
    vectors[:, 0] = roots
    return roots[:, None] * vectors


def _anova(grid: Grid, answers: Floats) -> Influence:
    components = anova_components(grid, answers)
    n = len(grid.varied)
    sets = np.arange(components.shape[1])
    holds = (sets[:, None] >> np.arange(n)) & 1
    size = np.maximum(holds.sum(axis=1), 1)
    # A variance that is only rounding counts as 0.
    variance = _without_rounding(components.sum(axis=1), answers)
    pairs = {(i, j): _shares(components[:, (1 << i) | (1 << j)], variance) for i, j in combinations(range(n), 2)}
    main = components[:, [1 << place for place in range(n)]]
    parts = (main, components @ holds, components @ (holds / size[:, None]))
    main, total, shapley = (_shares(part, variance) for part in parts)
    return Influence("anova", variance, main, total, shapley, pairs, np.zeros(len(answers)))


def _without_rounding(variance: Floats, answers: Floats) -> Floats:
    return np.where(variance <= 1e-24 * np.square(answers).max(axis=1, initial=0.0), 0.0, variance)


def _enumeration(grid: Grid, answers: Floats) -> Influence:
    n = len(grid.varied)
    if n > _MOST_DECISIONS:
        raise SettingError(
            f"{n} decisions are opened and some combinations are invalid: influence is computed for {_MOST_DECISIONS} "
            "at most; open fewer decisions"
        )
    sets = np.arange(1 << n)
    holds = (sets[:, None] >> np.arange(n)) & 1
    size = holds.sum(axis=1)
    explained = np.array([_explained(grid, answers, np.flatnonzero(own).tolist()) for own in holds])  # sets × answers
    variance = _without_rounding(explained[-1], answers)
    shapley = np.zeros((len(answers), n))
    for place in range(n):
        without = sets[(sets >> place) & 1 == 0]
        weight = np.array([1 / (n * comb(n - 1, int(count))) for count in size[without]])
        shapley[:, place] = weight @ (explained[without | 1 << place] - explained[without])
    main = explained[[1 << place for place in range(n)]].T
    total = (explained[-1] - explained[[((1 << n) - 1) & ~(1 << place) for place in range(n)]]).T
    main, total, shapley = (_shares(part, variance) for part in (main, total, shapley))
    return Influence("enumeration", variance, main, total, shapley, {}, np.zeros(len(answers)))


def _explained(grid: Grid, answers: Floats, places: list[int]) -> Floats:
    """Return Var(E[y | the options of some decisions]) of each answer."""
    from scipy.sparse import csr_array

    group = grid.groups(places)
    weights = np.bincount(group, weights=grid.weights)
    averaging = csr_array((grid.weights / weights[group], (group, np.arange(len(group)))))
    means = averaging @ answers.T
    centred = means - weights @ means
    return weights @ np.square(centred)


def _least_squares(grid: Grid, answers: Floats) -> Influence:
    """Estimate main effects, and pairs if there are twice as many cells as columns, in an orthonormal basis.

    With coefficients b̂ and their covariance Σ, Σ b² over a decision's columns is estimated by Σ b̂² − tr Σ (at least
    0), whose variance is 4 b'Σb + 2 tr Σ². The total share is a lower bound: it includes only main effects and pairs.
    """
    n = len(grid.varied)
    parts: dict[tuple[int, ...], Floats] = {}
    for place, decision in enumerate(grid.varied):
        functions = _basis(decision.shares) / decision.shares[:, None]
        parts[place,] = functions[grid.cells[:, place], 1:]
    for i, j in combinations(range(n), 2):
        crossed = parts[i,][:, :, None] * parts[j,][:, None, :]
        parts[i, j] = crossed.reshape(grid.n_cells, -1)
    if 2 * (1 + sum(part.shape[1] for part in parts.values())) > grid.n_cells:
        parts = {places: part for places, part in parts.items() if len(places) == 1}
    components, errors = _fitted(parts, answers, grid.n_cells)
    centred = answers - (answers @ grid.weights)[:, None]
    of_sample = np.square(centred) @ grid.weights / max(1 - np.square(grid.weights).sum(), 1e-12)
    variance = _without_rounding(of_sample, answers)
    # The sum of the estimates may slightly exceed the variance of the sample.
    variance = np.maximum(variance, sum(components.values()))
    shares = {places: _shares(component, variance) for places, component in components.items()}
    nothing = np.zeros(len(answers))
    main = np.column_stack([shares[place,] for place in range(n)])
    pairs = {(places[0], places[1]): share for places, share in shares.items() if len(places) == 2}
    with_pairs, error = np.zeros(main.shape), np.zeros(n)
    for place in range(n):
        with_pairs[:, place] = sum((share for places, share in pairs.items() if place in places), nothing)
        error[place] = np.sqrt(sum(errors[places] / len(places) ** 2 for places in errors if place in places))
    rest = 1 - sum(shares.values(), nothing) if variance[0] > 0 else nothing
    sums = (main, main + with_pairs, main + with_pairs / 2)
    return Influence("least squares", variance, *sums, pairs, rest, _shares(error, np.full(n, variance[0])))


def _fitted(
    parts: dict[tuple[int, ...], Floats], answers: Floats, n_cells: int
) -> tuple[dict[tuple[int, ...], Floats], dict[tuple[int, ...], float]]:
    """Return the component of each part for every answer, and its variance for the observed answer."""
    design = np.column_stack([np.ones(n_cells), *parts.values()])
    solution, _, rank, _ = np.linalg.lstsq(design, answers.T, rcond=None)
    residual = answers.T - design @ solution
    noise = np.square(residual).sum(axis=0) / max(n_cells - rank, 1)
    inverse = np.linalg.pinv(design.T @ design)
    components, errors, first = {}, {}, 1
    for places, part in parts.items():
        own = slice(first, first + part.shape[1])
        first += part.shape[1]
        covariance = inverse[own, own]
        components[places] = np.maximum(np.square(solution[own]).sum(axis=0) - noise * np.trace(covariance), 0.0)
        slope = solution[own, 0]
        spread = noise[0] * covariance
        errors[places] = float(4 * slope @ spread @ slope + 2 * np.square(spread).sum())
    return components, errors


def influence_rows(grid: Grid, leads: Leads, drawn: Resampled) -> list[dict[str, Any]]:
    """Return one row per answer and decision, and one per answer and two decisions, with intervals over users."""
    effects, signs = np.vstack([leads.d_z, drawn.d_z]), np.vstack([leads.lead, drawn.sign])
    rows = []
    for answer, table in zip(ANSWERS, (effects, signs.astype(np.float64))):
        influence = influences(grid, table[:, grid.universe])
        for place, decision in enumerate(grid.varied):
            shares = {name: float(getattr(influence, name)[0, place]) for name in ("main", "total", "shapley")}
            low, high = interval(shares["shapley"], influence.shapley[1:, place])
            error = None if influence.error is None else float(influence.error[place])
            own = {**shares, "lower": low, "upper": high, "error": error, "interaction": None}
            rows.append(_labelled(answer, influence, decision.name, None, decision.kind) | own)
        nothing = dict.fromkeys(("main", "total", "shapley", "error"))
        for (first, second), share in influence.pairs.items():
            low, high = interval(float(share[0]), share[1:])
            label = _labelled(answer, influence, grid.varied[first].name, grid.varied[second].name, None)
            rows.append(label | nothing | {"lower": low, "upper": high, "interaction": float(share[0])})
    return rows


def _labelled(answer: str, influence: Influence, decision: str, other: str | None, kind: str | None) -> dict[str, Any]:
    numbers = {"variance": float(influence.variance[0]), "rest": float(influence.rest[0])}
    names = {"answer": answer, "decision": decision, "with_decision": other, "kind": kind}
    return {**names, "method": influence.method, **numbers}
