"""The joint test of two systems over all universes of a question.

Given the trained models and independent users, the null hypothesis is that E[x_u] = 0 in every universe. Four
statistics of z = Σx/√Σx² (`UserContributions`) over the distinct universes are tested:

- ``median``: |median z|;
- ``net``: the share of universes where one system is significantly better minus the share where the other is, absolute;
- ``either``: the share of universes with a significant difference in either direction; if two shares are equal, as they
  often are with few universes, the one with the larger mean |z| counts as larger;
- ``largest``: max |z|, over the universes in which at least 30 users differ (over all, if there are none).

Each is compared with two sets of draws, and p is the larger of the two p = (1 + #{T* ≥ T})/(1 + B):

- *Signs.* Swapping two systems for a user changes the sign of x_u in every universe at once, so one matrix of user
  signs times users × universes gives the joint distribution of all z. This is exact if x is symmetric under the null.
- *Users.* If x is skewed, as with weighted averages or if few users differ, z has longer tails than random signs give,
  and a maximum over thousands of universes depends on the far tails. So users are drawn with replacement from x minus
  its mean, and z* = Σwx/√Σwx², where w is how often each is drawn: the studentised bootstrap of Romano and Wolf (2005).
  More than 1,500 users are drawn in 1,500 random groups, whose sums have the same mean, variance and skewness.

A rejection means that the systems differ somewhere, not which one leads; if decisions change the winner, ``either``
detects a difference while ``median`` and ``net`` do not. Retraining is not taken into account unless what other seeds
may add is part of the draws (`SeedSpread`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._streams import stream
from cranfield._terminal import progress
from cranfield.audits.contributions import Singles, UserContributions, critical_z, effect_of, p_of, z_of
from cranfield.audits.grid import Floats, Grid
from cranfield.facts import audit as audit_facts
from cranfield.recommenders import blas_threads, in_threads

DRAWS = 10_000  # default number of draws of signs, and of users

STATISTICS = ("median", "net", "either", "largest")
CHANCES = tuple(f"{what} of {over}" for over in ("cells", "universes") for what in ("leads", "significantly", "either"))

_BLOCK = 250  # a block of draws is one matrix product on one thread, so the sums do not depend on the number of threads
_ROUNDING = 1e-5  # rounding error of a statistic: a draw this close to the observed value counts as equal
# If fewer users differ, all of them can be missing from a draw of users, and the largest z would depend on them.
_FEWEST_USERS = 30
_GROUPS = 1500  # more users than this are drawn in groups: drawing each would take longer without a visible effect
_MOST_PAIRS = 2000  # maximum number of pairs of cells that differ by chance: more would add no information


@dataclass(frozen=True, eq=False)
class Question:
    """The universes of one question, or all of them, with their weights in shares of cells, which sum to 1."""

    universes: NDArray[np.int64]
    weights: Floats
    options: Mapping[str, str] | None = None  # that define the question; None for all questions together
    tested: Question | None = None  # the universes with a linear average, which can be tested and resampled, if any

    @classmethod
    def of(cls, grid: Grid, linear: NDArray[np.bool_]) -> list[Question]:
        """Return all universes together, then each question."""

        def question(mask: NDArray[np.bool_], options: Mapping[str, str] | None) -> Question:
            tested = mask & linear[grid.universe]
            of_tested = cls(*_weighted(grid, tested), options) if tested.any() else None
            return cls(*_weighted(grid, mask), options, of_tested)

        questions = [question(np.ones(grid.n_cells, dtype=bool), None)]
        if grid.of_kind("question"):
            for number in range(int(grid.questions.max()) + 1):
                mask = grid.questions == number
                questions.append(question(mask, question_of(grid, int(np.flatnonzero(mask)[0]))))
        return questions

    @property
    def name(self) -> str | None:
        """The options in words; None for all questions together."""
        return None if self.options is None else audit_facts.question_text(self.options)

    def shares(self, over: str) -> Floats:
        """Return the weights of the universes in shares of ``"cells"``, or equal ones in shares of ``"universes"``."""
        return self.weights if over == "cells" else np.full(len(self.universes), 1 / len(self.universes))


def _weighted(grid: Grid, mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], Floats]:
    """Return the universes of some cells, and their weights."""
    weights = grid.universe_weights(mask)
    universes = np.flatnonzero(weights)
    return universes, weights[universes]


def question_of(grid: Grid, cell: int) -> dict[str, str]:
    """Return the options that define the question of a cell; none if no decision changes the question."""
    words = grid.words(cell)
    return {name: words[name] for name in (grid.varied[place].name for place in grid.of_kind("question"))}


def joint_tests(
    x: Singles,
    users: NDArray[np.int64],
    questions: Sequence[Question],
    *,
    spread: SeedSpread | None = None,
    draws: int = DRAWS,
    alpha: float = 0.05,
    seed: int = 0,
) -> list[audit_facts.JointTest]:
    """Test the universes of each question jointly, by the same draws; with ``spread``, also by draws of other seeds."""
    squares = np.einsum("uv,uv->u", x, x, dtype=np.float64)
    unit = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(x)), where=squares > 0).astype(np.float32)
    scaled = np.multiply(x, unit[:, None])
    columns, groups = scaled.T, _in_groups(scaled, seed).T  # z of a draw is its signs times the columns
    group_squares = np.square(groups)
    critical = critical_z(users, alpha).astype(np.float32)
    enough = np.count_nonzero(x, axis=1) >= _FEWEST_USERS
    measures = [_Measures.of(question, critical, enough) for question in questions]

    def block(number: int) -> list[list[Floats]]:
        by_signs = user_signs(columns.shape[0], number, seed) @ columns
        drawn = draw_counts(len(groups), number, seed)
        sums, squared = drawn @ groups, drawn @ group_squares
        by_users = np.divide(sums, np.sqrt(squared), out=np.zeros_like(sums), where=squared > 0)
        sets = [by_signs, by_users]
        if spread is not None:
            more = spread.draws(number, seed)
            sets += [by_signs + more, by_users + more]
        return [[own.shares(by_signs), *map(own.statistics, sets)] for own in measures]

    numbers = range(-(-draws // _BLOCK))
    with progress("Joint test", total=len(numbers), unit="blocks") as bar, blas_threads(1):
        blocks = in_threads(block, numbers, bar)
        # Computed in a block of the same shape, so that a draw without any swap gives exactly the same numbers.
        z = (np.ones((_BLOCK, columns.shape[0]), dtype=np.float32) @ columns)[:1]
    tests = []
    for place, own in enumerate(measures):
        shares, signs, resampled, *of_seeds = (
            np.concatenate(parts)[:draws] for parts in zip(*(each[place] for each in blocks))
        )
        often = np.sort(shares, axis=0)[-max(1, int(0.05 * len(shares)))]
        observed = own.statistics(z)[0]
        retrained = _named(_p_values(observed, *of_seeds)) if of_seeds else None
        values = (
            _named(observed),
            _named(_p_values(observed, signs, resampled)),
            retrained,
            _named(signs.mean(axis=0)),
        )
        chances = dict(zip(CHANCES, np.minimum(often, 1.0).tolist()))
        tests.append(audit_facts.JointTest(len(own.critical), len(signs), *values, chances))
    return tests


def user_signs(n_users: int, block: int, seed: int = 0) -> Singles:
    """Return a block of draws × users: 1 or −1, each with probability one half; the same for all pairs of systems."""
    width = -(-n_users // 8)
    data = stream(seed, "audit", "signs", block).integers(0, 256, (_BLOCK, width), dtype=np.uint8)
    signs: Singles = np.unpackbits(data, axis=1, count=n_users).astype(np.float32)
    signs *= 2
    signs -= 1
    return signs


def draw_counts(n_users: int, block: int, seed: int = 0) -> Singles:
    """Return a block of draws × users: how often each user is in a draw of ``n_users`` users with replacement."""
    places = (stream(seed, "audit", "users", block).random((_BLOCK, n_users)) * n_users).astype(np.int64)
    places += n_users * np.arange(_BLOCK)[:, None]
    counts: Singles = np.bincount(places.ravel(), minlength=_BLOCK * n_users).astype(np.float32)
    return counts.reshape(_BLOCK, n_users)


def _in_groups(x: Singles, seed: int) -> Singles:
    """Return universes × users minus their means; with more than `_GROUPS` users, the sums of random groups."""
    n_users = x.shape[1]
    means = x.mean(axis=1, dtype=np.float64)
    if n_users <= _GROUPS:
        return (x - means[:, None]).astype(np.float32)
    order = np.argsort(stream(seed, "audit", "groups").random(n_users), kind="stable")
    bounds = np.linspace(0, n_users, _GROUPS, endpoint=False).astype(np.int64)
    sizes = np.diff(bounds, append=n_users)
    # Row by row, since a reordered copy of all users would need as much memory again.
    return np.stack([np.add.reduceat(row[order], bounds) - mean * sizes for row, mean in zip(x, means)]).astype(
        np.float32
    )


@dataclass(frozen=True, eq=False)
class _Measures:
    """Computes the statistics of z over the universes of a question, for each draw."""

    question: Question
    critical: Singles
    counted: NDArray[np.int64] | slice
    everywhere: bool

    @classmethod
    def of(cls, question: Question, critical: Singles, enough: NDArray[np.bool_]) -> _Measures:
        own = enough[question.universes]
        counted = slice(None) if own.all() or not own.any() else np.flatnonzero(own)
        return cls(question, critical[question.universes], counted, len(question.universes) == len(critical))

    def _own(self, z: Singles) -> Singles:
        return z if self.everywhere else z[:, self.question.universes]

    def statistics(self, z: Singles) -> Floats:
        """Return draws × the four statistics, with the mean |z| to break ties between equal shares."""
        z = self._own(z)
        ahead, behind = (mark.mean(axis=1) for mark in (z >= self.critical, z <= -self.critical))
        counted = z[:, self.counted]
        largest = np.maximum(counted.max(axis=1), -counted.min(axis=1))
        mean = np.abs(z).mean(axis=1)
        return np.column_stack([np.abs(_medians(z)), np.abs(ahead - behind), ahead + behind, largest, mean])

    def shares(self, z: Singles) -> Floats:
        """Return draws × the shares of `CHANCES`."""
        z = self._own(z)
        marks = [mark.astype(np.float32) for mark in (z > 0, z < 0, z >= self.critical, z <= -self.critical)]
        columns = []
        for over in ("cells", "universes"):
            first, second, better, worse = (mark @ self.question.shares(over).astype(np.float32) for mark in marks)
            columns += [np.maximum(first, second), np.maximum(better, worse), better + worse]
        return np.column_stack(columns).astype(np.float64)


def _medians(z: Singles) -> Singles:
    """Return the median of each row, three times as fast as `numpy.median`."""
    middle = [(z.shape[1] - 1) // 2, z.shape[1] // 2]
    return np.partition(z, middle, axis=1)[:, middle].mean(axis=1)


def _p_values(observed: Floats, *drawn: Floats) -> Floats:
    """Return, for each statistic, the largest p-value over the sets of draws."""
    either = STATISTICS.index("either")
    counts = []
    for draws in drawn:
        reached = draws >= observed * (1 - _ROUNDING)
        above = draws[:, either] > observed[either] * (1 + _ROUNDING)
        reached[:, either] &= above | reached[:, -1]
        counts.append(reached.sum(axis=0))
    return (1 + np.max(counts, axis=0)) / (1 + len(drawn[0]))


def _named(values: Floats) -> dict[str, float]:
    return dict(zip(STATISTICS, values.tolist()))


def seed_noise(
    grid: Grid, systems: tuple[str, ...], terms: UserContributions, alpha: float = 0.05
) -> list[audit_facts.SeedNoise]:
    """Return the noise of every chance decision and system; of many pairs of cells, a subset is compared."""
    noise = []
    for place in grid.of_kind("chance"):
        pairs = grid.pairs_by_chance(place)
        if not pairs:
            continue
        chosen = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), _MOST_PAIRS)).round().astype(np.int64))
        universes = grid.universe[np.array(pairs)[chosen]]
        for values, name in zip(terms.values, systems):
            significant = [_differs(values, terms.users, pair, alpha) for pair in universes]
            noise.append(
                audit_facts.SeedNoise(grid.varied[place].name, name, len(significant), float(np.mean(significant)))
            )
    return noise


def _differs(values: Singles, users: NDArray[np.int64], pair: NDArray[np.int64], alpha: float) -> bool:
    """Return whether the terms of one system, universes × users, differ significantly between two universes."""
    most = users[pair].max(keepdims=True)
    x = (values[pair[0]] - values[pair[1]])[None]
    return bool(p_of(effect_of(z_of(x), most), most)[0] < alpha)


@dataclass(frozen=True, eq=False)
class SeedSpread:
    """How much z varies between trainings with other seeds, which all cells with the same chance options share.

    In a set-up with K cells that differ by chance, let m be the mean of x over the n users, v = Σx²/n² the contribution
    of users to its variance, s² the variance of m over the K cells, and e² = (Σ_u var_k(x_ku)/n − s²)/(n − 1) the part
    of s² that is noise of users in each cell, which v has too. s²/v and e²/v are averaged over the set-ups of a
    question.
    """

    ratio: Floats  # s²/v of each universe's question
    noise: Floats  # e²/v
    degrees: int  # K − 1
    option: NDArray[np.int64]  # the chance options of each universe, by number

    @classmethod
    def of(cls, grid: Grid, x: Singles, users: NDArray[np.int64]) -> SeedSpread | None:
        """Return the spread of x, universes × users; None if no set-up has several cells that differ by chance."""
        counts = np.bincount(grid.setups)
        if not grid.has_chance or counts.max() < 2:
            return None
        ratios, of_question = [], []
        for setup in np.flatnonzero(counts > 1):
            cells = np.flatnonzero(grid.setups == setup)
            own, n = x[grid.universe[cells]].astype(np.float64), np.maximum(users[grid.universe[cells]], 2)
            by_users = (np.square(own).sum(axis=1) / n**2.0).mean()
            seeds = (own.sum(axis=1) / n).var(ddof=1)
            noise = (own.var(axis=0, ddof=1).sum() / n.mean() - seeds) / (n.mean() - 1)
            if by_users > 0:
                ratios.append((seeds / by_users, max(noise, 0.0) / by_users))
                of_question.append(grid.questions[cells[0]])
        known = np.bincount(np.array(of_question, dtype=np.int64), minlength=int(grid.questions.max()) + 1)
        ratio, noise = (
            np.bincount(of_question, weights=row, minlength=len(known)) / np.maximum(known, 1)
            for row in np.reshape(ratios, (-1, 2)).T
        )
        question, options = grid.questions[grid.cell_of], grid.groups(grid.of_kind("chance"))
        return cls(ratio[question], noise[question], int(counts[counts > 1].min()) - 1, options[grid.cell_of])

    def draws(self, block: int, seed: int) -> Singles:
        """Return a block of draws × universes: what other seeds add to z, √max(s² W − e², 0)/v · N for each option.

        W = (K − 1)/χ² with K − 1 degrees of freedom, because s² is known from K seeds only, and N is normal, the same
        for all universes with the same chance options: the fiducial distribution of `cranfield.measures.Errors.p`.
        """
        random = stream(seed, "audit", "seeds", block)
        known = self.degrees / random.chisquare(self.degrees, _BLOCK)
        normal = random.standard_normal((_BLOCK, int(self.option.max()) + 1))[:, self.option]
        size = np.sqrt(np.maximum(self.ratio * known[:, None] - self.noise, 0.0))
        return np.asarray(size * normal, dtype=np.float32)


def turned_by_chance(grid: Grid, lead: NDArray[np.int8]) -> float | None:
    """Return the share of set-ups in which each system leads in some cell (of these leads); None without chance."""
    if not grid.has_chance:
        return None
    both = [np.bincount(grid.setups, weights=lead == sign) > 0 for sign in (1, -1)]
    return float(np.mean(both[0] & both[1]))
