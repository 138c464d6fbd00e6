"""The verb `bias`: ratings and systems, or ranked lists in; `Bias` out, with what popularity explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield.biases.densities import Density, density, expected_precision
from cranfield.biases.estimators import as_split, estimate
from cranfield.biases.protocols import Protocols, protocols_of_data, protocols_of_lists
from cranfield.biases.random_rankings import RandomTargets
from cranfield.biases.result import Bias
from cranfield.comparisons import compare
from cranfield.data import AUTO, Ratings, Relevance
from cranfield.facts import Fact
from cranfield.facts import bias as bias_facts
from cranfield.judgments import Context, Judged, as_judged, as_runs, as_test, judged_by
from cranfield.measures import PLAIN, Measuring, Scores, by_popularity, group_of_items, measure
from cranfield.metrics import Metric
from cranfield.rankings import Gaps, Run, Ties, recommend
from cranfield.recommenders import named_systems
from cranfield.splits import Split, counted_test
from cranfield.tables import UNKNOWN

Values = NDArray[np.float64]

SYSTEMS = ("popularity", "random", "average", "knn", "puresvd")  # the systems to train if none are named

POPULARITY = "popularity"


def popularity_shares(scores: Scores, popularity: str, runs: Sequence[Run], split: Split, n: int) -> pl.DataFrame:
    """Return how much of each system's score by one metric popularity explains: one row per system.

    Its average (``mean``); ``reached``, the average of popularity over its own; ``partial_correlation`` with popularity
    over users, given the number of relevant test items of the user; and of its first ``n`` items ``recommended``, the
    mean share of users who rated them in training, over that of the catalogue, and ``head``, the share that is among
    the most popular items that make up a fifth of all ratings.
    """
    means = scores.average()[:, 0]
    place = scores.systems.index(popularity)
    size = np.log1p(scores.relevant.astype(np.float64))
    values = np.nan_to_num(scores.values[:, 0])
    rows = []
    for s, system in enumerate(scores.systems):
        run = next(run for run in runs if run.name == system)
        recommended, head = _popularity_of_lists(run, split, n)
        partial = partial_correlation(values[s], values[place], size)
        rows.append((system, means[s], means[place] / means[s] if means[s] else None, partial, recommended, head))
    names = ("mean", "reached", "partial_correlation", "recommended", "head")
    return pl.DataFrame(rows, schema={"system": pl.String, **dict.fromkeys(names, pl.Float64)}, orient="row")


def partial_correlation(x: Values, y: Values, given: Values) -> float:
    """Return the correlation of x and y after removing what is linear in ``given``; NaN if one is constant."""
    left, right = _residuals(x, given), _residuals(y, given)
    scale = float(np.sqrt((left @ left) * (right @ right)))
    tiny = 1e-12 * (1.0 + float(np.abs(x).max(initial=0)) * float(np.abs(y).max(initial=0))) * max(len(x), 1)
    return float(left @ right) / scale if scale > tiny else float("nan")


def _residuals(values: Values, given: Values) -> Values:
    centred, covariate = values - values.mean(), given - given.mean()
    spread = float(covariate @ covariate)
    return centred - covariate * (float(covariate @ centred) / spread) if spread > 0 else centred


def _popularity_of_lists(run: Run, split: Split, n: int) -> tuple[float, float]:
    """Return the mean popularity of the first n items of all lists relative to the catalogue, and the head's share."""
    train, test = split.train, split.test
    tested = np.append(test.user_counts > 0, False)[test.user_ids.recoded(run.users, run.user_ids)]
    listed = run.items[(run.entry_ranks <= n) & np.repeat(tested, np.diff(run.indptr))]
    items = train.item_ids.recoded(listed, run.item_ids)  # an unknown item, the last one, has no ratings
    counts = np.append(train.item_counts, 0).astype(np.float64)
    head = np.append(group_of_items(train) == 0, False)
    usual = float(train.item_counts.mean())
    if len(items) == 0 or usual == 0:
        return float("nan"), float("nan")
    return float(counts[items].mean()) / usual, float(head[items].mean())


def bias(
    data: Ratings | None = None,
    systems: Any = None,
    *,
    runs: Any = None,
    test: Any = None,
    train: Ratings | None = None,
    repeats: str | None = None,
    metric: str | Metric = "P@10",
    threshold: float | str | None = AUTO,
    groups: int = 10,
    nonrelevant: int | None = None,
    by: Literal["list", "user"] = "list",
    splits: int = 5,
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    alpha: float = 0.05,
    propensities: str | Ratings | None = None,
    clip: float = 0.0,
    seed: int = 0,
    jobs: int | None = None,
    strict: bool = False,
) -> Bias:
    """Measure how much of an evaluation is due to popularity, and which of its conclusions change without it.

    Give either ratings, on which systems are trained under each protocol, or ranked lists with their test and training
    ratings, which are measured under each protocol without training. Ranking by popularity is added to the systems if
    it is not among them. To popularity is attributed only what changes between a neutral protocol and its control,
    which has the same design: from 1R to P1R and U1R, and from AR-NN to UAR.

    Parameters
    ----------
    data, systems
        Ratings, and systems as for `recommend`.
    runs, test, train
        Ranked lists as for `measure`, and the ratings; popularity is counted in the training ratings.
    repeats
        With ``runs``: whether test items that are in their user's training ratings count, as for `measure`: ``exclude``
        or ``allow``, where all items are candidates.
    metric
        A metric with a cut-off.
    threshold
        The lowest relevant rating.
    groups
        The number of popularity percentiles of P1R.
    nonrelevant
        The number of non-relevant items drawn for a list of 1R, P1R and U1R; 99 by default, or as many as a percentile
        has. P, Recall, HitRate, RR, AP, DCG and nDCG are expectations over all draws.
    by
        How 1R, P1R and U1R are averaged: over lists, as in equation (1), or over users. Tests are over users in both.
    splits
        With ``data``: the number of random splits, and of uniform-test splits. Tests are over users and splits.
    ties, gaps
        How items with equal scores are ordered when runs are read.
    alpha
        The level of significance of the tests, which are permutation tests of all pairs, corrected by max-|t|.
    propensities, clip
        Also compute IPS, SNIPS and doubly robust estimates with these propensities: see `estimate`.
    seed, jobs
        The seed of every random choice, and the number of systems trained in parallel.
    strict
        With ``runs``: turn warnings about implausible inputs into errors.

    Examples
    --------
    >>> import cranfield as cf
    >>> world = cf.simulate.world(120, 80, 3_000, seed=1)
    >>> answer = cf.bias(world.ratings, ["popularity", "random"], groups=4, nonrelevant=10)
    >>> [protocol.name for protocol in answer.protocols]
    ['AR', '1R', 'P1R', 'U1R', 'AR-NN', 'UAR']
    """
    measured = Metric.of(metric)
    if measured.definition.whole_system or measured.cutoff is None:
        raise SettingError(f"{measured} is not a metric of lists with a cut-off; choose one such as P@10 or nDCG@10")
    alpha, seed = check.share("alpha", alpha), check.whole("seed", seed, at_least=0)
    groups, splits = check.whole("groups", groups, at_least=2), check.whole("splits", splits)
    check.one_of("by", by, ("list", "user"))
    nonrelevant = None if nonrelevant is None else check.whole("nonrelevant", nonrelevant)
    if nonrelevant is not None and nonrelevant < measured.cutoff:
        raise SettingError(
            f"nonrelevant={nonrelevant} makes lists of {nonrelevant + 1:,} items, in which every item is among the "
            f"first {measured.cutoff:,}; choose more, or a smaller cut-off"
        )
    if propensities is None and clip != 0:
        raise SettingError(f"clip={clip} does nothing without propensities; leave it out, or give propensities=...")
    if (data is None) == (runs is None):
        raise SettingError("give either ratings to train systems on, or runs=... with test=... and train=...")
    if data is not None:
        chosen = _with_popularity(data, systems, seed)
        level = Relevance.of(data, threshold).threshold
        protocols = protocols_of_data(data, chosen, measured, level, groups, nonrelevant, by, splits, seed, jobs)
    else:
        if systems is not None:
            raise SettingError("systems are trained on ratings, and runs are given; leave one of them out")
        if repeats == "only":
            raise SettingError("repeats='only' leaves no popularity to remove: give exclude or allow")
        counted = test if repeats is None else counted_test(as_test(test), train, repeats)
        judged, split = _judged(runs, counted, train, threshold, ties, gaps, seed, keep_seen=repeats == "allow")
        level = judged[0].judgments.threshold
        protocols = protocols_of_lists(judged, split, measured, groups, nonrelevant, by, seed, strict)
    if data is not None and repeats is not None:
        raise SettingError("repeats says what counts of given lists; leave it out for ratings")
    answer = _answer(protocols, measured, level, alpha, seed, given=data is None, keep_seen=repeats == "allow")
    if propensities is None:
        return answer
    split, judged = protocols.split, list(protocols.judged)
    options: dict[str, Any] = {"n": measured.cutoff, "threshold": level, "clip": clip, "seed": seed}
    estimates = estimate(judged, split.test, train=split.train, propensities=propensities, **options)
    return replace(answer, estimates=estimates)


def _with_popularity(data: Any, systems: Any, seed: int) -> Any:
    """Return the systems to train, popularity among them."""
    if not isinstance(data, Ratings):
        raise SettingError(f"{type(data).__name__} is not ratings; read them with cf.read")
    chosen = list(SYSTEMS) if systems is None else systems
    chosen = [chosen] if isinstance(chosen, str) else chosen
    if POPULARITY in named_systems(chosen, seed):
        return chosen
    return {**chosen, POPULARITY: POPULARITY} if isinstance(chosen, Mapping) else [*chosen, POPULARITY]


def _judged(
    runs: Any,
    test: Any,
    train: Ratings | None,
    threshold: float | str | None,
    ties: Ties | None,
    gaps: Gaps,
    seed: int,
    *,
    keep_seen: bool,
) -> tuple[list[Judged], Split]:
    """Return the judged lists, those of popularity among them, and the split of their ratings."""
    if test is None:
        raise SettingError("runs are measured against test ratings; give them as test=...")
    if train is None:
        raise SettingError("popularity is counted in the training ratings; give them as train=...")
    if len(train) == 0:
        raise InputError("the training set has no ratings, so nothing is popular", remedy="give some")
    test = as_test(test)
    split = as_split(train, test)
    level, context = Relevance.of(split.test, threshold, split.train).threshold, Context(split.train)
    runs = runs if split.test is test else as_runs(runs, ties, gaps)  # judged lists use the codes of their test set
    judged = as_judged(runs, split.test, level, context, ties=ties, gaps=gaps)
    runs = as_runs(judged, ties)
    if any(run.one_relevant for run in runs):
        raise SettingError("one-relevant runs keep no lists; give the lists of all targets")
    for run in runs:
        run.refuse_gaps("the popularity of lists")
    if not any(run.name == POPULARITY for run in runs):
        longest = max(int(run.list_lengths.max(initial=1)) for run in runs)
        (run,) = recommend(split, {POPULARITY: POPULARITY}, length=max(longest, 1), seed=seed, keep_seen=keep_seen)
        judged.append(judged_by(run, judged[0].judgments, context))
    return judged, split


def _answer(
    protocols: Protocols, metric: Metric, level: float, alpha: float, seed: int, *, given: bool, keep_seen: bool
) -> Bias:
    """Combine the measurements, what popularity explains of them, and the tests."""
    cutoff = metric.cutoff
    assert cutoff is not None
    scores = protocols.every[0].scores
    scores.check_measured()
    # Protocols differ in what is judged, which is what they are compared for, so every test goes by the judgments.
    comparisons = {
        name: compare(
            own, alpha=alpha, seed=seed, average=averaging.average, groups=averaging.groups, unjudged="ignore"
        )
        for name, own, averaging in protocols.every
    }
    measuring = Measuring(metrics=[str(metric)], threshold=level)
    targets = density(protocols.split, threshold=level, keep_seen=keep_seen)
    predicted, departures = _predicted(protocols, targets, cutoff, keep_seen)
    split = protocols.split
    by_group = by_popularity(list(protocols.judged), split.test, f"Recall@{cutoff}", train=split.train)
    return Bias(
        metric=str(metric),
        threshold=level,
        popularity=POPULARITY,
        shares=popularity_shares(scores, POPULARITY, protocols.runs, split, cutoff),
        groups=by_group.select("system", "group", "items", "ratings", "lists", "mean"),
        protocols=protocols.every,
        comparisons=comparisons,
        ratios=RandomTargets.of(protocols.judged, keep_seen).compared(scores, measuring, PLAIN, seed),
        density=targets,
        predicted=predicted,
        departures=departures,
        notes=protocols.notes,
        caveats=_caveats(protocols, level, given=given),
    )


def _predicted(
    protocols: Protocols, targets: Density, n: int, keep_seen: bool
) -> tuple[pl.DataFrame, tuple[Fact, ...]]:
    """Return the predicted and measured precision of random ranking and of popularity, and why they differ."""
    place = protocols.every[0].scores.systems.index(POPULARITY)
    measured = measure(protocols.judged[place], metrics=f"P@{n}").average().item()
    ours = _in_codes_of(protocols.split, protocols.runs[place])
    rows = [("a random ranking", "σδ, equation (4)", targets.predicted_random, targets.rho)]
    departures: tuple[Fact, ...] = ()
    if ours is not None:
        for unseen in (False,) if keep_seen else (False, True):
            expected = expected_precision(ours, protocols.split, targets, n, unseen=unseen)
            departures += expected.departures
            rows.append((POPULARITY, expected.equation, expected.low, measured))
    names = {"system": pl.String, "equation": pl.String, "predicted": pl.Float64, "measured": pl.Float64}
    return pl.DataFrame(rows, schema=names, orient="row"), departures


def _in_codes_of(split: Split, run: Run) -> Run | None:
    """Return a run over the vocabularies of a split; None if it contains ids that the split does not have."""
    user_ids, item_ids = split.train.user_ids, split.train.item_ids
    users, items = user_ids.recoded(run.users, run.user_ids), item_ids.recoded(run.items, run.item_ids)
    if (users == UNKNOWN).any() or (items == UNKNOWN).any() or (np.diff(users) <= 0).any():
        return None
    return replace(run, user_ids=user_ids, item_ids=item_ids, users=users, items=items)


def _caveats(protocols: Protocols, level: float, *, given: bool) -> tuple[Fact, ...]:
    """Return what cannot be known from these ratings."""
    test, train = protocols.split.test, protocols.split.train
    caveats: list[Fact] = [bias_facts.PopularityRemark("liked or met")]
    if not ((test.values < level).any() or (train.values < level).any()):
        caveats.append(bias_facts.PopularityRemark("nothing below the threshold"))
    if given and len(protocols.every) > 1:
        longest = max(int(run.list_lengths.max(initial=0)) for run in protocols.runs)
        inside = [lists.relevant.sum() / max(int(lists.n_relevant.sum()), 1) for lists in protocols.judged]
        outside = 1.0 - float(np.mean(inside))
        if outside > 0:
            neutral = tuple(protocol.name for protocol in protocols.every[1:])
            caveats.append(bias_facts.OutsideLists(longest, outside, neutral))
    return tuple(caveats)
