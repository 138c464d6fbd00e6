"""Estimates of the metrics if every item were judged: IPS, SNIPS and doubly robust.

A test rating is a judgment that was observed with some probability, its propensity p. An observed judgment represents
1/p similar pairs. The estimates hold if the propensities are right; the doubly robust one also holds if the imputed
relevance q is right. Neither can be verified from the data alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import MissingExtraError, SettingError
from cranfield._numbers import DASH, number_text
from cranfield._record import Step
from cranfield._result import Result
from cranfield._streams import stream
from cranfield._table import Table
from cranfield.biases.propensities import PROPENSITY_KINDS, Propensities, fit_propensities, given_propensities
from cranfield.data import AUTO, Ratings
from cranfield.facts import Fact, sentences
from cranfield.facts import bias as bias_facts
from cranfield.judgments import Context, Judged, as_judged, as_runs, as_test
from cranfield.rankings import Gaps, Ties
from cranfield.recommenders import recommender
from cranfield.splits import Split, predefined
from cranfield.tables import UNKNOWN

Floats = NDArray[np.float64]

IMPUTATIONS = ("item mean", "svd")
"""How the doubly robust estimate can predict the relevance of unobserved pairs; fitted on training ratings."""

Imputation = Callable[[NDArray[Any], NDArray[Any]], Floats]
"""From codes of users and items to imputed relevance, fitted on the training ratings alone."""

_PRIOR = 5.0
_FEW = 0.1
_BLOCK = 1 << 21


@dataclass(frozen=True, eq=False)
class Estimates(Result):
    """The estimated scores of systems, by each estimator."""

    # One row per system, metric and estimator: the estimate, its interval, the number of observed relevant items it
    # is based on, their effective sample size, and the largest amount by which ``clip`` can lower it (for IPS; null
    # for others).
    rows: pl.DataFrame
    propensities: Propensities  # the propensities that were used
    # The lowest relevant rating, the cut-off, the lowest propensity, and the confidence of the intervals.
    threshold: float
    n: int
    clip: float
    level: float
    notes: tuple[Fact, ...] = ()  # what was left out and why, and estimates that are based on few ratings
    warnings: tuple[Fact, ...] = ()

    drawn = ("estimate", "lower", "upper", "system", "metric", "estimator")

    def facts(self) -> list[Fact]:
        """Return the system with the highest estimate by each metric and estimator, the warnings and the notes."""
        known = self.rows.filter(pl.col("estimate").is_not_nan()).sort("estimate", descending=True)
        best = known.unique(["metric", "estimator"], keep="first", maintain_order=True)
        columns = ("metric", "estimator", "system", "estimate", "lower", "upper")
        order = self.rows.select("metric", "estimator").unique(maintain_order=True)
        rows = order.join(best, on=["metric", "estimator"], maintain_order="left").select(columns).iter_rows()
        return [*(bias_facts.HighestEstimate(*row) for row in rows), *self.warnings, *self.notes]

    def frame(self) -> pl.DataFrame:
        """Return one row per system, metric and estimator.

        Columns: ``system, metric, estimator``; the ``estimate`` with its interval ``lower, upper``; the number of
        ``observed`` relevant items it is based on, their ``effective`` sample size; and ``clip_bias``, the largest
        amount by which ``clip`` can lower it (for IPS; null for others).
        """
        return self.rows

    def table(self) -> Table:
        """Return the estimates with their intervals: one row per system, metric and estimator."""
        rows = [
            [
                *(row[name] for name in ("system", "metric", "estimator")),
                number_text(row["estimate"]),
                f"[{number_text(row['lower'])}, {number_text(row['upper'])}]",
                f"{row['effective']:,.0f} of {row['observed']:,}",
                DASH if row["clip_bias"] is None else f"≤ {row['clip_bias']:.4f}",
            ]
            for row in self.rows.iter_rows(named=True)
        ]
        interval = f"{self.level:.0%} interval"
        header = ["system", "metric", "estimator", "estimate", interval, "effective", "lost by clip"]
        caption = f"Estimates under {self.propensities.kind} propensities"
        return Table(header, rows, caption, sentences([*self.warnings, *self.notes]))


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

    Examples
    --------
    >>> import cranfield as cf
    >>> split = cf.splits.random(cf.simulate.world(60, 50, 900, seed=1).ratings, seed=1)
    >>> runs = cf.recommend(split, ["popularity", "random"])
    >>> estimates = cf.estimate(runs, split.test, train=split.train, threshold=4, resamples=10)
    >>> estimates.frame()["estimator"].unique(maintain_order=True).to_list()[:2]
    ['observed', 'IPS']
    """
    n, resamples = check.whole("n", n), check.whole("resamples", resamples, at_most=check.MOST_DRAWS)
    level, seed = check.share("level", level), check.whole("seed", seed, at_least=0)
    clip = check.number("clip", clip)
    if not 0 <= clip <= 1:
        raise SettingError(f"clip={clip:g} is not a probability; give a number from 0 to 1")
    if train is None:
        raise SettingError("popularity and propensities come from training ratings; give them as train=...")
    split = as_split(train, as_test(test))
    judged = as_judged(runs, split.test, threshold, Context(split.train), ties=ties, gaps=gaps)
    for run in as_runs(judged, ties):
        run.refuse_gaps("an estimate")
    judgments = judged[0].judgments
    chances = _propensities(propensities, split, exponent, seed)
    has_others = bool((~judgments.relevant).any())
    imputed, notes = _imputed(imputations, split.train, judgments.threshold, seed, has_others)
    if not has_others:
        notes.append(bias_facts.PopularityRemark("relevant ratings alone"))
    counts = _resampled_users(judged[0].n_lists, resamples, seed)
    rows: list[dict[str, Any]] = []
    warnings: list[Fact] = []
    for lists in judged:
        sums = _UserSums.of(lists, chances, clip, imputed, n)
        name = "" if lists.ranked is None else lists.ranked.name
        own = sums.rows(name, n, counts, level, has_others)
        rows += own
        warnings += [*sums.warnings(name), *_impossible(name, own)]
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    return Estimates(frame, chances, judgments.threshold, n, clip, level, tuple(notes), tuple(warnings))


def _impossible(system: str, rows: Sequence[dict[str, Any]]) -> list[Fact]:
    """Return a warning for estimates above 1, which is impossible for precision and recall."""
    above = [(row["estimator"], row["metric"], row["estimate"]) for row in rows if row["estimate"] > 1]
    return [bias_facts.AboveOne(system, tuple(above))] if above else []


_SCHEMA = {
    "system": pl.String, "metric": pl.String, "estimator": pl.String, "estimate": pl.Float64, "lower": pl.Float64,
    "upper": pl.Float64, "observed": pl.Int64, "effective": pl.Float64, "clip_bias": pl.Float64,
}  # fmt: skip


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
    check.one_of("propensities", given, PROPENSITY_KINDS)
    return fit_propensities(split, given, exponent=exponent, seed=seed)


def _imputed(
    chosen: Sequence[str] | None, train: Ratings, threshold: float, seed: int, has_others: bool
) -> tuple[dict[str, Imputation], list[Fact]]:
    """Return the imputations by name; one whose library is missing is left out with a note, unless it was chosen."""
    names = (IMPUTATIONS if has_others else ()) if chosen is None else chosen
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        check.one_of("imputations", name, IMPUTATIONS)
    if names and not has_others:
        raise SettingError(
            "a doubly robust estimate needs observed ratings that are not relevant, and no test rating is below the "
            "threshold; leave imputations out, or raise the threshold"
        )
    imputed, notes = {}, list[Fact]()
    for name in names:
        try:
            imputed[name] = (_item_mean if name == "item mean" else _svd)(train, train.values >= threshold, seed)
        except MissingExtraError as error:
            if chosen is not None:
                raise
            notes.append(bias_facts.NoteOn((f"DR ({name})",), str(error)))
    return imputed, notes


def _item_mean(train: Ratings, liked: NDArray[np.bool_], seed: int) -> Imputation:  # noqa: ARG001
    overall = float(liked.mean())
    likes = np.bincount(train.items, weights=liked, minlength=train.n_items)
    # An unknown item, the last one, has the overall share.
    shares = np.append((likes + _PRIOR * overall) / (train.item_counts + _PRIOR), overall)
    return lambda _, items: shares[items]


def _svd(train: Ratings, liked: NDArray[np.bool_], seed: int) -> Imputation:
    binary = Ratings(train.user_ids, train.item_ids, train.indptr, train.items, liked.astype(np.float32))
    model = recommender(f"svd(seed={seed})").fit(binary)

    def predicted(users: NDArray[Any], items: NDArray[Any]) -> Floats:
        result = np.full(len(users), float(liked.mean()))
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

    parts: dict[str, Floats]  # by name
    weights: Floats  # of the observed relevant items
    clip_bias: float  # how much clipping can lower IPS

    @classmethod
    def of(
        cls, judged: Judged, chances: Propensities, clip: float, imputed: dict[str, Imputation], n: int
    ) -> _UserSums:
        judgments, lists = judged.judgments, judged.n_lists
        chance = chances.of(judgments.users[judgments.lists], judgments.items)
        if not (chance > 0).all():
            raise SettingError(
                f"{int((~(chance > 0)).sum()):,} test ratings have the propensity 0, so they could not have been "
                "observed; give propensities above 0"
            )
        weight = 1.0 / np.maximum(chance, clip)
        top = judged.with_ties_broken().cut(n)
        held, entries, run = weight[top.pointers], top.entries, judged.run
        assert run is not None
        users, items = judgments.users[entries.lists], judgments.item_ids.recoded(entries.items, run.item_ids)
        parts = {
            "hits": top.total(where=top.relevant),
            "relevant": judged.n_relevant.astype(np.float64),
            "weighted hits": top.total(held, where=top.relevant),
            "weighted judged": top.total(held),
            "weighted relevant": np.bincount(judgments.lists, weight * judgments.relevant, lists).astype(np.float64),
            "test ratings": judgments.n_judged.astype(np.float64),
        }
        if chances.given is None:
            parts["expected ratings"] = chances.by_user[judgments.users]
        for name, impute in imputed.items():
            own = impute(judgments.users[top.lists], judgments.items[top.pointers])
            parts[f"direct {name}"] = np.bincount(entries.lists, impute(users, items), lists) / n
            parts[f"correction {name}"] = top.total(held * (top.relevant - own)) / n
        lost = 0.0
        if clip > 0:  # an unknown propensity counts as 0
            lost = np.maximum(1.0 - np.nan_to_num(chances.of(users, items)) / clip, 0.0).sum() / (n * lists)
        return cls(parts, held[top.relevant], float(lost))

    def rows(
        self, system: str, n: int, counts: NDArray[np.float32], level: float, has_others: bool
    ) -> list[dict[str, Any]]:
        """Return a row for each estimator; ``counts`` is how often each resample contains each user."""
        observed = self.parts["hits"].sum()
        drawn = self._estimates(counts, n, has_others)
        rows = []
        for (metric, estimator), value in self._estimates(np.ones((1, counts.shape[1])), n, has_others).items():
            known = drawn[metric, estimator][~np.isnan(drawn[metric, estimator])]
            ends = np.quantile(known, [(1 - level) / 2, (1 + level) / 2]) if len(known) else (np.nan, np.nan)
            effective = float(observed) if estimator == "observed" else effective_size(self.weights)
            clip_bias = self.clip_bias if (metric, estimator) == (f"P@{n}", "IPS") else None
            numbers = (float(value[0]), float(ends[0]), float(ends[1]), int(observed), effective, clip_bias)
            rows.append(dict(zip(_SCHEMA, (system, metric, estimator, *numbers))))
        return rows

    def _estimates(self, counts: NDArray[Any], n: int, has_others: bool) -> dict[tuple[str, str], Floats]:
        """Return each estimate for each row of ``counts``, which is how often each user is in a resample."""
        users, precision, recall = counts.shape[1], f"P@{n}", f"Recall@{n}"
        total = {
            name: np.asarray(counts @ values.astype(counts.dtype), dtype=np.float64)
            for name, values in self.parts.items()
        }
        # The propensities of a resample must sum to its own number of test ratings.
        scale = total["test ratings"] / total["expected ratings"] if "expected ratings" in total else 1.0
        hits, weighted = total["hits"], total["weighted hits"]
        estimates = {(precision, "observed"): hits / (n * users), (precision, "IPS"): weighted / scale / (n * users)}
        if has_others:
            estimates[precision, "SNIPS"] = _over(weighted, total["weighted judged"])
        for name in (part.removeprefix("direct ") for part in total if part.startswith("direct ")):
            doubly_robust = (total[f"direct {name}"] + total[f"correction {name}"] / scale) / users
            estimates[precision, f"DR ({name})"] = doubly_robust
        estimates[recall, "observed"] = _over(hits, total["relevant"])
        estimates[recall, "IPS"] = _over(weighted, total["weighted relevant"])
        return estimates

    def warnings(self, system: str) -> list[Fact]:
        """Return a warning if a few weights dominate."""
        count, effective = len(self.weights), effective_size(self.weights)
        if count == 0:
            return [bias_facts.UnevenWeights(system, 0)]
        few = max(1, count // 100)
        carried = float(np.sort(self.weights)[-few:].sum() / self.weights.sum())
        if effective < _FEW * count or (count > 1 and carried > 0.5):
            return [bias_facts.UnevenWeights(system, count, few, carried, effective)]
        return []


def effective_size(weights: Floats) -> float:
    """Return (Σ w)² / Σ w²: how many equal weights have the same variance."""
    squares = float((weights**2).sum())
    return float(weights.sum()) ** 2 / squares if squares > 0 else 0.0


def _over(numerator: Floats, denominator: Floats) -> Floats:
    """Divide; NaN if the denominator is 0."""
    return np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0)
