"""The score of a random ranking of each user's targets, and the ratio of a system's score to it.

In a uniformly random ranking all targets are tied, so metrics with a closed form over tied items have one here: P,
Recall, F1, HitRate, RR, AP, Rprec, DCG, nDCG, RBP and others, at any cut-off. Other metrics are averaged over random
rankings, with a standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import takes_decisions
from cranfield._errors import SettingError
from cranfield._result import Result
from cranfield._streams import stream
from cranfield._table import Table
from cranfield._terminal import progress
from cranfield.biases.densities import Density, density_of
from cranfield.data import AUTO, Ratings
from cranfield.facts import Fact
from cranfield.facts import bias as bias_facts
from cranfield.judgments import Context, Judged, Judgments, NegativeGrades, RunFacts, as_judged, as_test, judged_by
from cranfield.measures import (
    DEFAULT_METRICS,
    Average,
    Averaging,
    AveragingOptions,
    Kind,
    Measuring,
    Scores,
    measure_judged,
)
from cranfield.metrics import Metric
from cranfield.rankings import Gaps, Run, Targets, Ties
from cranfield.splits import counted_test
from cranfield.tables import UNKNOWN

DRAWS = 100  # number of random rankings to draw for a metric without a closed form

_MEANS = ("mean", "weighted")


@dataclass(frozen=True, eq=False)
class RatioToRandom(Result):
    """The averages of systems compared with that of a random ranking of the same targets."""

    # The scores of the systems, and the expected scores of a random ranking, as the scores of one system.
    scores: Scores
    random: Scores
    errors: NDArray[np.float64]  # the standard error of the random average of each metric: 0 for closed forms
    targets: float  # the mean number of targets per list
    averaging: Averaging  # how lists are averaged
    density: Density | None = None  # ρ, σ, δ and t of the targets; None without training ratings

    drawn = ("times_random", "system", "metric")

    def facts(self) -> list[Fact]:
        """Return how far the systems are above a random ranking by each metric."""
        known = self.frame().drop_nulls("times_random")
        ranges = known.group_by("metric", maintain_order=True).agg(
            least=pl.col("times_random").min(), most=pl.col("times_random").max()
        )
        return [bias_facts.TimesRandom(*row) for row in ranges.iter_rows()]

    def frame(self) -> pl.DataFrame:
        """Return one row per system and metric: the average, that of random, its error, and the ratio.

        ``times_random`` is null if the random average is 0 or undefined.
        """
        means, chance = self.scores.average(self.averaging), self.random.average(self.averaging)[0]
        rows = [
            (system, metric, means[s, m], chance[m], self.errors[m], means[s, m] / chance[m] if chance[m] else None)
            for s, system in enumerate(self.scores.systems)
            for m, metric in enumerate(self.scores.metrics)
        ]
        numbers = ("mean", "random", "random_error", "times_random")
        schema = {"system": pl.String, "metric": pl.String, **dict.fromkeys(numbers, pl.Float64)}
        return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col("times_random").fill_nan(None))

    def table(self) -> Table:
        """Return the ratio of each system to random: one row per system, and one for random itself."""
        frame = self.frame()
        rows = [
            [system, *("–" if ratio is None else f"{ratio:,.3g}" for ratio in own["times_random"])]
            for (system,), own in frame.group_by("system", maintain_order=True)
        ]
        chance = frame.filter(system=self.scores.systems[0]).select("random", "random_error").iter_rows()
        rows.append(["a random ranking", *(_chance_text(*numbers) for numbers in chance)])
        drawn = f"; with ± the mean of {DRAWS} random rankings and its standard error" if self.errors.any() else ""
        of_targets = f"all rankings of the targets of a user ({self.targets:,.0f} on average)"
        notes = [f"Random: the expectation over {of_targets}{drawn}."]
        if self.density is not None:
            notes.append(f"Targets: {self.density.symbols}; ρ is the precision of a random ranking.")
        return Table(["system", *self.scores.metrics], rows, "Scores divided by the score of a random ranking", notes)


def _chance_text(value: float, error: float) -> str:
    return "–" if np.isnan(value) else f"{value:.4f}" + (f" ±{error:.4f}" if error else "")


@takes_decisions(Averaging)
def ratio_to_random(
    runs: Any,
    test: Any = None,
    metrics: Sequence[str | Metric] | str | Metric = DEFAULT_METRICS,
    *,
    threshold: float | str | None = AUTO,
    lists: Kind = "full",
    ties: Ties | None = None,
    gaps: Gaps = "keep",
    train: Ratings | None = None,
    negative_grades: NegativeGrades = "judged",
    keep_seen: bool = False,
    repeats: str | None = None,
    candidates: Literal["all", "test"] = "all",
    targets: Targets | None = None,
    seed: int = 0,
    average: str | Average | Averaging = "mean",
    **decisions: Unpack[AveragingOptions],
) -> RatioToRandom:
    """Measure how many times better systems are than a random ranking of the same targets.

    Parameters
    ----------
    runs, test, metrics, threshold, lists, ties, gaps, train, negative_grades
        As for `measure`.
    keep_seen
        Whether training items of a user are also targets. Otherwise the targets are all items of the training set, the
        test set and the lists that the user did not rate in training.
    repeats
        What counts of items that a user had in training, as for `measure`; the targets follow: with ``exclude`` the
        other items, with ``allow`` all items, with ``only`` the training items of the user, of which a random order
        finds many.
    candidates
        ``all`` of these items, or those with a ``test`` rating.
    targets
        Other targets, such as drawn ones.
    seed
        Fixes the random rankings of metrics without a closed form.
    average, undefined, groups, coverage, by
        How lists are averaged; a mean or a weighted mean.

    Notes
    -----
    A random list is as long as the longest list of any system. In the one-relevant design its targets are those of the
    list. The expectation is over all equally likely rankings; for condensed lists, over rankings of the items with a
    test rating.

    Examples
    --------
    >>> import cranfield as cf
    >>> train = cf.Ratings.of([1, 2, 2, 2], ["a", "b", "c", "d"])
    >>> test = cf.Ratings.of([1], ["b"])
    >>> ratio_to_random({"mine": {1: ["b", "c"]}}, test, ["P@1", "RR"], train=train).frame().rows()
    [('mine', 'P@1', 1.0, 0.3333333333333333, 0.0, 3.0), ('mine', 'RR', 1.0, 0.5, 0.0, 2.0)]
    """
    averaging = Averaging.of(average, **decisions)
    if averaging.kind.spelling.name not in _MEANS:
        raise SettingError(
            f"average='{averaging.average}' of a random ranking is not the average of its expected values; use mean or "
            "weighted"
        )
    measuring = Measuring(metrics=metrics, threshold=threshold, lists=lists)
    test = None if test is None else as_test(test)
    if repeats is not None:
        test, keep_seen = counted_test(as_test(test), train, repeats), keep_seen or repeats == "allow"
    judged = as_judged(runs, test, threshold, Context(train), ties=ties, gaps=gaps, negative_grades=negative_grades)
    scores = measure_judged(judged, measuring)
    baseline = RandomTargets.of(judged, check.flag("keep_seen", keep_seen), candidates, targets)
    if repeats == "only":
        others = [metric for metric in measuring.wanted if not metric.definition.averages_ties]
        if others or targets is not None:
            what = "targets of your own" if not others else str(others[0])
            raise SettingError(f"repeats='only' has no random ranking for {what}; leave one of them out")
        assert train is not None
        seen, is_new = _seen(train, judged[0].judgments, baseline.candidates)
        baseline = replace(baseline, sizes=np.maximum(seen, 1), inside=~is_new, excluded=None)
    return baseline.compared(scores, measuring, averaging, check.whole("seed", seed, at_least=0))


@dataclass(frozen=True, eq=False)
class RandomTargets:
    """What a random ranking needs to know about the targets of each list."""

    like: Judged  # lists of some system: its judgments and its context
    sizes: NDArray[np.int64]  # the number of targets of each list
    inside: NDArray[np.bool_]  # whether each judgment is of a target
    longest: int  # the length of a random list
    excluded: Ratings | None  # the training ratings whose items are not targets for their user, if any
    candidates: NDArray[np.bool_] | None = None  # which items of the test set's vocabulary can be targets, if not all

    @classmethod
    def of(
        cls, judged: Sequence[Judged], keep_seen: bool = False, candidates: str = "all", targets: Targets | None = None
    ) -> RandomTargets:
        """Return the targets of judged lists that all have the same judgments."""
        check.one_of("candidates", candidates, ("all", "test"))
        first = judged[0]
        judgments, longest = first.judgments, max(lists.depth for lists in judged)
        everything = np.ones(len(judgments), dtype=np.bool_)
        if first.ranked is not None and first.ranked.one_relevant:
            sizes = np.maximum.reduce([lists.lengths for lists in judged]).astype(np.int64)
            return cls(first, np.maximum(sizes, 1), everything, longest, None)
        if targets is not None:
            return cls(first, *_of_targets(targets, judgments), longest, None)
        train = None if keep_seen else first.context.train
        is_tested = np.zeros(len(judgments.item_ids), dtype=np.bool_)
        is_tested[judgments.items] = True
        if candidates == "test":
            items = int(is_tested.sum())
        else:
            strangers = {item for lists in judged if lists.ranked for item in lists.ranked.unknown_items}
            items = len(judgments.item_ids) + len(_unknown(strangers, first.context.train, judgments))
        sizes, inside = np.full(judgments.n_lists, items), everything
        if train is not None:
            seen, inside = _seen(train, judgments, is_tested if candidates == "test" else None)
            sizes = sizes - seen
        return cls(first, np.maximum(sizes, 1), inside, longest, train, is_tested if candidates == "test" else None)

    @property
    def density(self) -> Density | None:
        """The density of relevance in the targets; None without training ratings."""
        judgments, train = self.like.judgments, self.like.context.train
        if not isinstance(train, Ratings):
            return None
        one_relevant = self.like.ranked is not None and self.like.ranked.one_relevant
        relevant = judgments.relevant & self.inside
        positive = int((train.values >= judgments.threshold).sum()) + int(judgments.relevant.sum())
        return Density(
            sizes=self.sizes,
            relevant=np.bincount(judgments.lists[relevant], minlength=judgments.n_lists).astype(np.int64),
            n_users=len(np.unique(judgments.users)),
            n_candidates=len(judgments.item_ids) if self.candidates is None else int(self.candidates.sum()),
            n_ratings=len(train) + len(judgments.base),
            n_test=len(judgments.base),
            n_positive=positive,
            one_relevant=one_relevant,
            threshold=judgments.threshold,
        )

    def compared(self, scores: Scores, measuring: Measuring, averaging: Averaging, seed: int) -> RatioToRandom:
        """Compare scores with those of random rankings of these targets."""
        wanted = measuring.wanted
        closed = [metric for metric in wanted if metric.definition.averages_ties and metric.definition.name != "AUC"]
        others = [metric for metric in wanted if metric not in closed]
        parts, errors = [], dict.fromkeys(map(str, wanted), 0.0)
        if closed:
            parts.append(measure_judged([self.tied()], measuring.with_(metrics=tuple(closed))))
        if others:
            drawn, spread = self._drawn_scores(measuring.with_(metrics=tuple(others)), averaging, seed)
            parts.append(drawn)
            errors |= spread
        random, of_random = _side_by_side(parts, list(errors)), np.array(list(errors.values()))
        return RatioToRandom(scores, random, of_random, float(self.sizes.mean()), averaging, self.density)

    def tied(self) -> Judged:
        """Return lists in which every order of the targets is equally likely."""
        judgments = self.like.judgments
        lists, pointers = judgments.lists[self.inside], np.flatnonzero(self.inside)
        sizes, counts = self.sizes.astype(np.int32), np.bincount(lists, minlength=judgments.n_lists)
        return Judged(
            judgments=judgments,
            lists=lists,
            ranks=(1 + np.arange(len(lists)) - (np.cumsum(counts) - counts)[lists]).astype(np.int32),
            pointers=pointers,
            lengths=np.minimum(sizes, self.longest).astype(np.int32),
            tied_from=np.ones(len(lists), dtype=np.int32),
            tied_to=sizes[lists],
            context=self.like.context,
            groups=self.like.groups,
            group_names=self.like.group_names,
            ranked=RunFacts("random", ties="average", longest=self.longest, shares_items=True),
        )

    def drawn(self, seed: int, number: int) -> Judged:
        """Return one random ranking of the targets: ranks of the judged ones drawn without replacement."""
        tied, rng = self.tied(), stream(seed, "random ranking", number)
        ranks = random_ranks(tied.lists, self.sizes, rng)
        kept = np.flatnonzero(ranks <= self.longest)
        order = kept[np.lexsort((ranks[kept], tied.lists[kept]))]
        lists, pointers, drawn = tied.lists[order], tied.pointers[order], ranks[order].astype(np.int32)
        return replace(tied, lists=lists, ranks=drawn, pointers=pointers, tied_from=None, tied_to=None, _views={})

    def _drawn_scores(self, measuring: Measuring, averaging: Averaging, seed: int) -> tuple[Scores, dict[str, float]]:
        """Return the mean scores over random rankings, and the standard error of each metric's average."""
        refuse = [str(metric) for metric in measuring.wanted if "predictions" in metric.definition.needs]
        if refuse:
            raise SettingError(f"a random ranking predicts no ratings, so {', '.join(refuse)} has no random value")
        # A custom metric may use whole lists.
        definitions = [metric.definition for metric in measuring.wanted]
        of_lists = any("whole lists" in own.needs or own.family == "own" for own in definitions)
        drawn = []
        with progress("Ranking at random", total=DRAWS, unit="rankings") as bar:
            for number in range(DRAWS):
                judged = self._whole(seed, number) if of_lists else self.drawn(seed, number)
                drawn.append(measure_judged([judged], measuring))
                bar.advance()
        averages = np.stack([scores.average(averaging)[0] for scores in drawn])
        values = np.stack([scores.values for scores in drawn])
        overall = np.stack([scores.overall for scores in drawn if scores.overall is not None])
        known = ~np.isnan(values)
        sums = np.where(known, values, 0.0).sum(axis=0)
        mean = np.divide(sums, known.sum(axis=0), out=np.full(sums.shape, np.nan), where=known.any(axis=0))
        spread = averages.std(axis=0, ddof=1) / np.sqrt(DRAWS)
        scores = replace(drawn[0], values=mean, overall=overall.mean(axis=0))
        return scores, dict(zip(scores.metrics, spread.tolist()))

    def _whole(self, seed: int, number: int) -> Judged:
        """Return one random ranking with all items of its lists, for metrics that need whole lists."""
        judgments, rng = self.like.judgments, stream(seed, "random lists", number)
        items = judgments.item_ids
        if judgments.n_lists and self.sizes.max() > len(items):
            raise SettingError(
                "lists hold items that the test set does not know, so whole random lists of them cannot be drawn; "
                "make lists and test set from the same split"
            )
        rows = []
        block = max(1, (1 << 23) // max(len(items), 1))
        for start in range(0, judgments.n_lists, block):
            users = judgments.users[start : start + block]
            keys = rng.random((len(users), len(items)), dtype=np.float32)
            if self.candidates is not None:
                keys[:, ~self.candidates] = 2.0
            if self.excluded is not None:
                seen, columns = _training_cells(self.excluded, judgments, users)
                keys[seen, columns] = 2.0
            rows.append(np.argsort(keys, axis=1, kind="stable")[:, : self.longest])
        lists = np.concatenate(rows)
        lengths = np.minimum(self.sizes, self.longest)
        held = np.arange(lists.shape[1])[None, :] < lengths[:, None]
        run = Run(
            name="random",
            user_ids=judgments.user_ids,
            item_ids=items,
            users=judgments.users,
            indptr=np.append(np.int64(0), np.cumsum(lengths)),
            items=lists[held].astype(np.int32),
        )
        return judged_by(run, judgments, self.like.context)


def _side_by_side(parts: Sequence[Scores], names: Sequence[str]) -> Scores:
    """Join scores of the same lists with the metrics of all parts, in the order of ``names``."""
    where = {name: (part, place) for part in parts for place, name in enumerate(part.metrics)}
    chosen = [where[name] for name in names]
    assert all(part.overall is not None for part in parts)
    return replace(
        parts[0],
        metrics=tuple(names),
        values=np.stack([part.values[:, place] for part, place in chosen], axis=1),
        lower_is_better=tuple(part.lower_is_better[place] for part, place in chosen),
        zero_if_undefined=tuple(part.zero_if_undefined[place] for part, place in chosen),
        overall=np.stack([part.overall[:, place] for part, place in chosen if part.overall is not None], axis=1),
        filled=None,
        unjudged=None,
        recommended=None,
    )


def random_ranks(lists: NDArray[np.int32], sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Return distinct ranks from 1 to the size of its list for each entry; every choice is equally likely.

    Ranks are drawn with replacement, and those equal to an earlier one of their list are drawn again, so each is
    uniform over the ranks left by the earlier ones. A list has at most as many entries as its size.
    """
    assert (np.bincount(lists, minlength=len(sizes)) <= sizes).all()
    ranks = 1 + np.floor(rng.random(len(lists)) * sizes[lists]).astype(np.int64)
    width = np.int64(sizes.max(initial=0) + 1)
    while True:
        keys = lists * width + ranks
        order = np.argsort(keys, kind="stable")
        again = order[1:][keys[order][1:] == keys[order][:-1]]
        if len(again) == 0:
            return ranks
        ranks[again] = 1 + np.floor(rng.random(len(again)) * sizes[lists[again]]).astype(np.int64)


def _unknown(strangers: set[str], train: Ratings | None, judgments: Judgments) -> set[str]:
    """Return the items of lists and training set that are not in the test set, as text."""
    if train is None:
        return strangers
    codes = judgments.item_ids.recoded(np.arange(train.n_items), train.item_ids)
    return strangers | set(train.item_ids.text.filter(pl.Series(codes == UNKNOWN)).to_list())


def _seen(
    train: Ratings, judgments: Judgments, candidates: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return how many (candidate) training items each list's user has, and whether each judgment is of a new item."""
    users = train.user_ids.recoded(judgments.users, judgments.user_ids).astype(np.int64)
    counted = np.ones(len(train), dtype=np.bool_)
    if candidates is not None:
        counted = np.append(candidates, False)[judgments.item_ids.recoded(train.items, train.item_ids)]
    counts = np.append(np.bincount(train.users[counted], minlength=train.n_users), 0)[users]
    items, owners = train.item_ids.recoded(judgments.items, judgments.item_ids), users[judgments.lists]
    return counts, train.places(owners, items) < 0


def _training_cells(
    train: Ratings, judgments: Judgments, users: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return row (index in ``users``) and item (code in the test set) of these users' training ratings."""
    theirs = train.user_ids.recoded(users, judgments.user_ids)
    served = np.flatnonzero(theirs != UNKNOWN)
    counts = train.user_counts[theirs[served]]
    places = np.arange(counts.sum()) + np.repeat(train.indptr[theirs[served]] - (np.cumsum(counts) - counts), counts)
    rows, items = np.repeat(served, counts), judgments.item_ids.recoded(train.items[places], train.item_ids)
    return rows[items != UNKNOWN], items[items != UNKNOWN]


def _of_targets(targets: Targets, judgments: Judgments) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the number of targets of each list, and whether each judgment is of a target."""
    test = targets.test
    if test is None or test.item_ids != judgments.item_ids or test.user_ids != judgments.user_ids:
        raise SettingError("the targets are not from the split of this test set; make both from the same split")
    targets = targets if targets.drawn is not None else targets.drawn_for(judgments.users)
    relevance = density_of(targets, judgments.threshold)
    inside = np.zeros(len(judgments), dtype=np.bool_)
    for place, user in enumerate(judgments.users):
        held = slice(judgments.indptr[place], judgments.indptr[place + 1])
        inside[held] = targets.contain(np.array([user]), judgments.items[held][None, :])[0]
    return relevance.sizes, inside
