"""Estimates of the metrics if every item were judged: IPS, SNIPS and doubly robust.

A test rating is a judgment that was observed with some probability, its propensity p. An observed judgment represents
1/p similar pairs. The estimates hold if the propensities are right; the doubly robust one also holds if the imputed
relevance q is right. Neither can be verified from the data alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import MissingExtraError, SettingError
from cranfield._record import Step
from cranfield._streams import stream
from cranfield._table import Table
from cranfield.biases.propensities import KINDS, Propensities, fit_propensities, given_propensities
from cranfield.data import AUTO, Ratings
from cranfield.judgments import Context, Judged, as_runs, as_test
from cranfield.measures import as_judged
from cranfield.rankings import Gaps, Ties
from cranfield.recommenders import recommender
from cranfield.splits import Split, predefined
from cranfield.tables import UNKNOWN

Floats = NDArray[np.float64]

IMPUTATIONS = ("item mean", "svd")
"""How the doubly robust estimate can predict the relevance of unobserved pairs; fitted on training ratings."""

_PRIOR = 5.0
_FEW = 0.1
_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class Estimates:
    """The estimated scores of systems, by each estimator.

    Parameters
    ----------
    frame
        One row per system, metric and estimator: the estimate, its interval, the number of observed relevant items it
        is based on, their effective sample size, and the largest amount by which ``clip`` can lower it (for IPS; null
        for others).
    propensities
        The propensities that were used.
    threshold, n, clip, level
        The lowest relevant rating, the cut-off, the lowest propensity, and the confidence of the intervals.
    notes, warnings
        What was left out and why, and estimates that are based on few ratings.
    """

    frame: pl.DataFrame
    propensities: Propensities
    threshold: float
    n: int
    clip: float
    level: float
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return the estimates with their intervals: one row per system, metric and estimator."""
        rows = []
        for row in self.frame.iter_rows(named=True):
            bound = row["clip_bias"]
            rows.append(
                [
                    row["system"],
                    row["metric"],
                    row["estimator"],
                    _number(row["estimate"]),
                    f"[{_number(row['lower'])}, {_number(row['upper'])}]",
                    f"{row['effective']:,.0f} of {row['observed']:,}",
                    "–" if bound is None else f"≤ {bound:.4f}",
                ]
            )
        header = [
            "system",
            "metric",
            "estimator",
            "estimate",
            f"{self.level:.0%} interval",
            "effective",
            "lost by clip",
        ]
        return Table(
            header, rows, f"Estimates under {self.propensities.kind} propensities", [*self.warnings, *self.notes]
        )

    def _repr_html_(self) -> str:
        return self.table().html()


def _number(value: float) -> str:
    return "–" if value is None or np.isnan(value) else f"{value:.4f}"


def estimate(
    runs: Any,
    test: Any,
    *,
    train: Ratings | None,
    n: int = 10,
    propensities: str | Ratings | Propensities = "popularity",
    exponent: float | None = None,
    clip: float = 0.0,
    imputations: Sequence[str] | None = None,
    threshold: float | str | None = AUTO,
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimates:
    r"""Estimate P@n and Recall@n as if every pair were judged.

    With o = 1 for an observed pair, rel its relevance, p its propensity and q its imputed relevance, where the sums are
    over the first n items of the list of u, and m_u are all observed relevant items of u:

    .. math::
        IPS: \frac{1}{|U| n} \sum_{u,i} \frac{o}{p} rel \qquad
        SNIPS: \frac{\sum_{u,i} \frac{o}{p} rel}{\sum_{u,i} \frac{o}{p}} \qquad
        DR: \frac{1}{|U| n} \sum_{u,i} \left[q + \frac{o}{p}(rel - q)\right] \qquad
        Recall: \frac{\sum_{u,i} \frac{o}{p} rel}{\sum_u \sum_{i \in m_u} \frac{1}{p}}

    SNIPS and DR need observed ratings that are not relevant, and are left out if there are none.

    Parameters
    ----------
    runs, test, train, threshold, ties, gaps
        As for `measure`; training ratings are needed.
    n
        The cut-off.
    propensities
        ``popularity`` or ``logistic``, fitted on the training ratings (`fit_propensities`); `Ratings` whose values are
        the propensities of the pairs; or `Propensities`.
    exponent
        The exponent β of the popularity of items, if it should not be fitted.
    clip
        The lowest propensity that is used: larger values trade variance for bias. The largest amount by which this
        lowers an IPS estimate, (1/(\|U\| n)) Σ (1 − p/clip) over list items with p < clip, is in the column
        ``clip_bias``.
    imputations
        ``item mean`` (the damped share of relevant training ratings of the item) and ``svd`` (matrix factorisation of
        relevance); both by default. A system that resembles the imputation has an advantage.
    resamples, level, seed
        Intervals are percentiles of bootstrap resamples of users, in which the propensities are rescaled so that
        their sum is the number of test ratings of the resample.
    """
    n, resamples = check.whole("n", n), check.whole("resamples", resamples, at_most=check.MOST_DRAWS)
    level, seed = check.share("level", level), check.whole("seed", seed, at_least=0)
    clip = _checked_clip(clip)
    if train is None:
        raise SettingError(
            "popularity and propensities come from training ratings; give them as train=... (--train FILE)"
        )
    test = as_test(test)
    split = as_split(train, test)
    judged = as_judged(runs, split.test, threshold, Context(split.train), ties=ties, gaps=gaps)
    for run in as_runs(judged, ties):
        run.refuse_gaps("an estimate")
    level_of_relevance = judged[0].judgments.threshold
    chances = _propensities(propensities, split, exponent, seed)
    has_others = bool((~judged[0].judgments.relevant).any())
    names = _imputations(imputations, has_others)
    imputed, notes = _fitted(names, split.train, level_of_relevance, seed, chosen=imputations is not None)
    if not has_others:
        notes.append(
            "no test rating is below the threshold: SNIPS of precision and doubly robust estimates are left out"
        )
    counts = _resampled_users(judged[0].n_lists, resamples, seed)
    rows: list[dict[str, Any]] = []
    warnings: list[str] = []
    for lists in judged:
        sums = _UserSums.of(lists, chances, clip, imputed, n)
        name = "" if lists.ranked is None else lists.ranked.name
        rows += sums.rows(name, n, counts, level, has_others)
        warnings += [*sums.warnings(name), *_impossible(name, rows)]
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    return Estimates(frame, chances, level_of_relevance, n, clip, level, tuple(notes), tuple(warnings))


def _impossible(system: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return a warning for estimates above 1, which is impossible for precision and recall."""
    above = [
        f"{row['estimator']} of {row['metric']} {row['estimate']:.2f}"
        for row in rows
        if row["system"] == system and row["estimate"] > 1
    ]
    if not above:
        return []
    return [
        f"{system}: {', '.join(above)} is above 1: the items it recommends are observed more often than "
        "their propensities say, as when users come across items that suit them; look at SNIPS"
    ]


_SCHEMA = {
    "system": pl.String, "metric": pl.String, "estimator": pl.String, "estimate": pl.Float64, "lower": pl.Float64,
    "upper": pl.Float64, "observed": pl.Int64, "effective": pl.Float64, "clip_bias": pl.Float64,
}  # fmt: skip


def _checked_clip(clip: float) -> float:
    clip = check.number("clip", clip)
    if not 0 <= clip <= 1:
        raise SettingError(f"clip={clip:g} is not a probability; give a number from 0 to 1")
    return clip


def as_split(train: Ratings, test: Ratings) -> Split:
    """Return training and test ratings over one vocabulary."""
    if train.user_ids == test.user_ids and train.item_ids == test.item_ids:
        return Split(train, test, Step("split.predefined"))
    return predefined(train, test, overlap="test")


def _propensities(given: Any, split: Split, exponent: float | None, seed: int) -> Propensities:
    if isinstance(given, Propensities):
        return given
    if isinstance(given, Ratings):
        return given_propensities(given, split)
    check.one_of("propensities", given, KINDS)
    return fit_propensities(split, given, exponent=exponent, seed=seed)


def _imputations(names: Sequence[str] | None, has_others: bool) -> Sequence[str]:
    if names is None:
        return IMPUTATIONS if has_others else ()
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        check.one_of("imputations", name, IMPUTATIONS)
    if names and not has_others:
        raise SettingError(
            "a doubly robust estimate needs observed ratings that are not relevant, and no test rating is below the "
            "threshold; leave imputations out, or raise the threshold"
        )
    return names


def _fitted(
    names: Sequence[str], train: Ratings, threshold: float, seed: int, *, chosen: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return the imputations by name; one whose library is missing is left out with a note, unless it was requested."""
    imputed, notes = {}, []
    for name in names:
        try:
            imputed[name] = _imputed(name, train, threshold, seed)
        except MissingExtraError as error:
            if chosen:
                raise
            notes.append(f"DR ({name}) is left out: {error}")
    return imputed, notes


def _imputed(name: str, train: Ratings, threshold: float, seed: int) -> Any:
    """Return a function from codes of users and items to imputed relevance, fitted on the training ratings alone."""
    liked = (train.values >= threshold).astype(np.float64)
    overall = float(liked.mean())
    if name == "item mean":
        shares = (np.bincount(train.items, weights=liked, minlength=train.n_items) + _PRIOR * overall) / (
            train.item_counts + _PRIOR
        )
        return lambda _, items: np.where(np.asarray(items) == UNKNOWN, overall, shares[items])
    binary = Ratings(train.user_ids, train.item_ids, train.indptr, train.items, liked.astype(np.float32))
    model = recommender(f"svd(seed={seed})").fit(binary)

    def predicted(users: NDArray[Any], items: NDArray[Any]) -> Floats:
        result = np.full(len(users), overall)
        distinct, rows = np.unique(users, return_inverse=True)
        block = max(1, _BLOCK // max(train.n_items, 1))
        for start in range(0, len(distinct), block):
            scores = model.score(distinct[start : start + block])
            own = (rows >= start) & (rows < start + block) & (np.asarray(items) != UNKNOWN)
            result[own] = scores[rows[own] - start, items[own]]
        return np.clip(result, 0.0, 1.0)

    return predicted


def _resampled_users(n_lists: int, resamples: int, seed: int) -> NDArray[np.float32]:
    """Return resamples × lists: how often each user is drawn."""
    rng = stream(seed, "estimates")
    counts = np.empty((resamples, n_lists), dtype=np.float32)
    for row in counts:
        row[:] = np.bincount(np.floor(rng.random(n_lists) * n_lists).astype(np.int64), minlength=n_lists)
    return counts


@dataclass(frozen=True, eq=False)
class _UserSums:
    """The contribution of each user to the sums of the estimates of one system."""

    hits: Floats
    relevant: Floats
    weighted_hits: Floats
    weighted_judged: Floats
    weighted_relevant: Floats
    direct: dict[str, Floats]
    corrections: dict[str, Floats]
    weights: Floats
    test_ratings: Floats
    expected_ratings: Floats | None
    clip_bias: float

    @classmethod
    def of(cls, judged: Judged, chances: Propensities, clip: float, imputed: dict[str, Any], n: int) -> _UserSums:
        judgments = judged.judgments
        users = judgments.users[judgments.lists]
        chance = chances.of(users, judgments.items)
        if not (chance > 0).all():
            raise SettingError(
                f"{int((~(chance > 0)).sum()):,} test ratings have the propensity 0, so they could not have been "
                "observed; give propensities above 0"
            )
        weight = 1.0 / np.maximum(chance, clip)
        top = judged.with_ties_broken().cut(n)
        held = weight[top.pointers]
        entries = top.entries
        run = judged.run
        assert run is not None
        codes = judgments.item_ids.translation(run.item_ids)
        items = entries.items if codes is None else codes[entries.items]
        of_entry = judgments.users[entries.lists]
        direct, corrections = {}, {}
        for name, impute in imputed.items():
            direct[name] = np.bincount(entries.lists, weights=impute(of_entry, items), minlength=judged.n_lists) / n
            own = impute(judgments.users[top.lists], judgments.items[top.pointers])
            corrections[name] = top.total(held * (top.relevant - own)) / n
        bias = _clip_bias(chances, clip, of_entry, items, n * judged.n_lists)
        known = chances.given is None
        return cls(
            hits=top.total(where=top.relevant),
            relevant=judged.n_relevant.astype(np.float64),
            weighted_hits=top.total(held, where=top.relevant),
            weighted_judged=top.total(held),
            weighted_relevant=np.bincount(
                judgments.lists, weights=weight * judgments.relevant, minlength=judged.n_lists
            ).astype(np.float64),
            direct=direct,
            corrections=corrections,
            weights=held[top.relevant],
            test_ratings=judgments.n_judged.astype(np.float64),
            expected_ratings=chances.by_user[judgments.users] if known else None,
            clip_bias=bias,
        )

    def rows(
        self, system: str, n: int, counts: NDArray[np.float32], level: float, has_others: bool
    ) -> list[dict[str, Any]]:
        """Return a row for each estimator; ``counts`` is how often each resample contains each user."""
        values = self._estimates(np.ones((1, len(self.hits))), n, has_others)
        drawn = self._estimates(counts, n, has_others)
        rows = []
        for (metric, estimator), value in values.items():
            known = drawn[metric, estimator][~np.isnan(drawn[metric, estimator])]
            ends = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]) if len(known) else (np.nan, np.nan)
            rows.append(
                {
                    "system": system,
                    "metric": metric,
                    "estimator": estimator,
                    "estimate": float(value[0]),
                    "lower": float(ends[0]),
                    "upper": float(ends[1]),
                    "observed": int(self.hits.sum()),
                    "effective": float(self.hits.sum()) if estimator == "observed" else effective_size(self.weights),
                    "clip_bias": self.clip_bias if (metric, estimator) == (f"P@{n}", "IPS") else None,
                }
            )
        return rows

    def _estimates(self, counts: NDArray[Any], n: int, has_others: bool) -> dict[tuple[str, str], Floats]:
        """Return each estimate for each row of ``counts``, which is how often each user is in a resample."""

        def total(values: Floats) -> Floats:
            return np.asarray(counts @ values.astype(counts.dtype), dtype=np.float64)

        # The propensities of a resample must sum to its own number of test ratings.
        scale = 1.0 if self.expected_ratings is None else total(self.test_ratings) / total(self.expected_ratings)
        users, hits, weighted = len(self.hits), total(self.hits), total(self.weighted_hits)
        estimates = {(f"P@{n}", "observed"): hits / (n * users), (f"P@{n}", "IPS"): weighted / scale / (n * users)}
        if has_others:
            estimates[f"P@{n}", "SNIPS"] = _over(weighted, total(self.weighted_judged))
        for name, direct in self.direct.items():
            estimates[f"P@{n}", f"DR ({name})"] = (total(direct) + total(self.corrections[name]) / scale) / users
        estimates[f"Recall@{n}", "observed"] = _over(hits, total(self.relevant))
        estimates[f"Recall@{n}", "IPS"] = _over(weighted, total(self.weighted_relevant))
        return estimates

    def warnings(self, system: str) -> list[str]:
        """Return a warning if a few weights dominate."""
        count, effective = len(self.weights), effective_size(self.weights)
        if count == 0:
            return [f"{system}: no relevant test item is in the lists, so nothing is estimated"]
        few = max(1, count // 100)
        carried = float(np.sort(self.weights)[-few:].sum() / self.weights.sum())
        if effective < _FEW * count or (count > 1 and carried > 0.5):
            return [
                f"{system}: {few:,} of {count:,} observed relevant items carry {carried:.0%} of the weight (effective "
                f"sample size {effective:,.0f}); a larger clip trades this variance for bias"
            ]
        return []


def effective_size(weights: Floats) -> float:
    """Return (Σ w)² / Σ w²: how many equal weights have the same variance.

    Examples
    --------
    >>> effective_size(np.array([1.0, 1.0, 1.0, 1.0])), round(effective_size(np.array([100.0, 1.0, 1.0])), 2)
    (4.0, 1.04)
    """
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def _over(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN if the denominator is 0."""
    return np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0)


def _clip_bias(chances: Propensities, clip: float, users: NDArray[Any], items: NDArray[Any], places: int) -> float:
    """Return the largest amount by which clipping can lower an IPS estimate; an unknown propensity counts as 0."""
    if clip == 0:
        return 0.0
    chance = np.nan_to_num(chances.of(users, items), nan=0.0)
    return float(np.maximum(1.0 - chance / clip, 0.0).sum() / places)
