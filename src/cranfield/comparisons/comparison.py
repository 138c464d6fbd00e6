"""`Comparison`: the results of the tests as a frame, a sentence, a table, a matrix or letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from cranfield import _checks
from cranfield._errors import SettingError, nearest
from cranfield._numbers import number_text
from cranfield._record import Step
from cranfield._registry import parse
from cranfield._result import Figures, Result
from cranfield._settings import settings
from cranfield._table import Cell, Table, answer_and_table, places
from cranfield.comparisons import effects
from cranfield.comparisons.errors import chosen_test
from cranfield.comparisons.gate import NONE as NO_MARGIN
from cranfield.comparisons.gate import Gate, gate, pairs_with
from cranfield.comparisons.p_values import compact_letters
from cranfield.comparisons.sample import Floats, Sample
from cranfield.comparisons.samples import logarithm
from cranfield.comparisons.unjudged import Unjudged
from cranfield.facts import Fact, p_text, sentences
from cranfield.facts import comparison as comparison_facts
from cranfield.facts import gate as gate_facts
from cranfield.facts import scores as scores_facts
from cranfield.measures import Averaging
from cranfield.metrics import averaging_phrases, metric_label, properties_of
from cranfield.recommenders import system_among

_FIRST = ("metric", "system_a", "system_b", "difference", "lower", "upper", "p_corrected", "better")
_WITH_WINNERS = ("accuracy", "value")
# Maximum number of systems with letters; for more, the letters are longer than what they explain.
_MOST_LETTERED = 40


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """The result of `compare`.

    Parameters
    ----------
    rows
        One row per metric and pair of systems; see `frame`.
    systems, metrics
        Names.
    averages
        systems × metrics, over the users that are compared.
    lower_is_better
        For each metric, whether a smaller value is the better one.
    significance, correction, alpha, baseline
        How it was tested.
    population
        Which users are compared, if not all of them.
    trained_once
        Systems that use random numbers and were trained once, where that is known.
    relevance
        What makes an item relevant, and in which metrics: see `Scores.relevance`.
    counted
        Which users and lists count, and how.
    served, common
        If some users have no list: how many users each system serves, and the comparison among users that all serve.
    made_for
        Notes on systems that were made for some users only (see `Scores.made_for`), and on items that users had before.
    nothing_relevant
        Why no test item is relevant, if none is: see `Scores.nothing_relevant`.
    repetitions
        The number of repetitions (splits and seeds) that the users were measured with.
    spread
        metrics × systems: the standard deviation of each average between repetitions; empty without repetitions.
    same_split
        Whether all repetitions have the same split, so that they differ only in the training seeds.
    gate
        The gate whose claims replace the verdict; see `no_worse`.
    nothing_disliked
        The metrics for whose lists no judged item is disliked, so that unjudged items cannot be judged by them.
    entries
        How many entries of the lists are judged and liked, by metric; None where that says nothing. Like ``samples``,
        empty for a comparison that was read from a folder.
    samples
        The values by user that claims are tested with; empty for a comparison that was read from a folder.
    warnings
        Warnings about implausible inputs: see `Scores.warnings`.
    left_out
        The metrics that leave some users out, for whom they are undefined.
    beside
        The kind of average shown in the other tables, if it has no paired test and means are compared instead.
    step
        All decisions.

    Examples
    --------
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob", "cid"], ["x", "y", "y"])
    >>> runs = {"mine": {"ann": ["x"], "bob": ["x"]}, "other": {"ann": ["z"], "cid": ["y"]}}
    >>> scores = cf.measure(runs, test, "P@1")
    >>> cf.compare(scores).frame().columns[-2:]
    ['p_corrected', 'better']
    """

    rows: pl.DataFrame
    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    averages: Floats
    lower_is_better: tuple[bool, ...]
    significance: str
    correction: str
    alpha: float
    baseline: str | None = None
    population: comparison_facts.Population | None = None
    relevance: scores_facts.RelevantItems | None = None
    counted: comparison_facts.UsersThatCount | None = None
    served: comparison_facts.Served | None = None
    common: Comparison | None = None
    made_for: tuple[Fact, ...] = ()
    nothing_relevant: scores_facts.NothingRelevant | None = None
    trained_once: tuple[str, ...] = ()
    repetitions: int = 1
    spread: tuple[tuple[float, ...], ...] = ()
    same_split: bool = False
    nothing_disliked: tuple[str, ...] = ()
    gate: Gate | None = None
    samples: tuple[Sample, ...] = field(default=(), repr=False)
    entries: tuple[Unjudged | None, ...] = field(default=(), repr=False)
    warnings: tuple[Fact, ...] = ()
    beside: str = ""
    left_out: tuple[str, ...] = ()
    step: Step = field(default_factory=lambda: Step("compare"))

    def frame(self, *, detail: bool = False) -> pl.DataFrame:
        """Return one row per metric and pair of systems.

        Columns: ``metric, system_a, system_b``; their ``difference`` (a − b) with its interval ``lower, upper``;
        ``p_corrected``; and ``better``, the better system, if significant and told by the judgments. With ``detail``
        also: the averages ``mean_a, mean_b``; the ``standard_error`` of the difference with its ``degrees`` of freedom,
        and its standard deviation between repetitions, ``spread`` (null without repetitions); ``relative`` = difference
        / mean_b with its interval ``relative_lower, relative_upper`` (Fieller's), NaN where mean_b is 0; ``effect``
        (d_z) with ``effect_lower, effect_upper``; the numbers of users for whom a is better, as good or worse, ``wins,
        ties, losses``, and ``superiority`` = (wins + ties/2) / n; ``p``, and ``significant`` (p_corrected < α);
        ``tipping``, the share of all unjudged entries that must be liked to reverse the order, with ``tipping_ratio``,
        that share over the share of judged entries that are liked (below 1 nobody is called better; see `Unjudged`);
        ``n`` users; the ``level`` at which the correction tests a pair (α without one, α / pairs for ``holm`` and
        ``bonferroni``); ``test, method`` and ``error_bound``, how p was computed and how far it may be off;
        ``rejected``, the share of user subsets that reject, where subsets were drawn. If p-values are corrected, the
        intervals of a metric's pairs hold simultaneously (`largest_statistics`); otherwise each holds for its pair
        alone. With repetitions, the test and the intervals are over users crossed with repetitions (`Errors`).
        """
        return self.rows if detail else self.rows.select(_FIRST)

    def of_metric(self, metric: str | None = None) -> pl.DataFrame:
        """Return the rows of one metric; the name may be omitted if there is only one."""
        if metric is None and len(self.metrics) == 1:
            metric = self.metrics[0]
        if metric not in self.metrics:
            raise SettingError(f"there is no comparison by {metric!r}{nearest(str(metric), self.metrics)}")
        return self._by_metric.get(metric, self.rows.clear())

    @cached_property
    def _by_metric(self) -> dict[str, pl.DataFrame]:
        parts = self.rows.partition_by("metric", as_dict=True, maintain_order=True)
        return {str(name): part for (name,), part in parts.items()}

    def matrix(self, metric: str | None = None, show: str = "p_corrected") -> pl.DataFrame:
        """Return systems × systems, null for pairs that were not compared.

        ``show`` is ``p_corrected``, ``p``, ``difference`` (row − column) or ``effect``.
        """
        _checks.one_of("show", show, ("p_corrected", "p", "difference", "effect"))
        sign = -1 if show in ("difference", "effect") else 1
        cells: dict[tuple[str, str], float] = {}
        for row in self.of_metric(metric).iter_rows(named=True):
            cells[row["system_a"], row["system_b"]] = row[show]
            cells[row["system_b"], row["system_a"]] = sign * row[show]
        columns = {b: [cells.get((a, b)) for a in self.systems] for b in self.systems}
        return pl.DataFrame(
            {"system": list(self.systems), **columns},
            schema={"system": pl.String, **dict.fromkeys(columns, pl.Float64)},
        )

    def letters(self) -> pl.DataFrame:
        """Return one row per metric and system, best first, with its average and letters.

        Systems that share a letter do not differ significantly. This needs every pair, so it does not work with a
        baseline.
        """
        if self.baseline is not None:
            raise SettingError("letters need every pair of systems; leave out the baseline")
        rows, place = [], {system: s for s, system in enumerate(self.systems)}
        for m, metric in enumerate(self.metrics):
            order = self.order(m)
            differ = np.zeros((len(self.systems),) * 2, dtype=bool)
            different = self.of_metric(metric).filter("significant")
            a, b = ([place[system] for system in different[name]] for name in ("system_a", "system_b"))
            differ[a, b] = differ[b, a] = True
            letters = compact_letters(differ, order)
            rows += [
                {"metric": metric, "system": self.systems[s], "mean": self.averages[s, m], "letters": letters[s]}
                for s in order
            ]
        return pl.DataFrame(rows)

    def order(self, m: int) -> list[int]:
        """Return the systems from best to worst; systems without an average come last."""
        values = self.averages[:, m] if self.lower_is_better[m] else -self.averages[:, m]
        return [int(s) for s in np.argsort(values, kind="stable")]

    def power(self, difference: float | None = None, *, wanted: float = 0.8) -> pl.DataFrame:
        """Return, for each metric and pair, what a two-sided paired t-test can detect with users like these.

        The test has the level that the correction gives to a single pair, ``level`` in `frame`. Holm's steps and the
        correction of Benjamini and Hochberg find a little more.

        Columns: ``sd`` of the differences; ``smallest_difference`` that these users can show with the ``wanted`` power;
        the given ``difference`` (or the observed one), the ``power`` to detect it, and the ``users_needed`` to detect
        it with the wanted power. The power of an observed difference only restates its p-value, so give a difference
        that matters. With repetitions, the test is over users crossed with repetitions; ``users_needed`` is then NaN,
        since more users do not make the spread between repetitions smaller.
        """
        return effects.power_frame(self.rows, difference, wanted, repeated=bool(self.spread), shift=self._shift)

    def equivalence(self, margin: float, *, relative: bool = False) -> pl.DataFrame:
        """Return, for each metric and pair, whether the systems differ by no more than ``margin`` (TOST).

        Columns: ``margin`` (a share of mean_b if ``relative``); ``p_equivalent`` against a difference as large as the
        margin either way; ``p_no_worse`` against a being worse than b by the margin or more; and at α, uncorrected,
        ``equivalent`` and ``no_worse``. The 1 − 2α interval ``lower, upper`` lies inside ±margin exactly when
        ``equivalent``.
        """
        lower = np.array([self.lower_is_better[self.metrics.index(name)] for name in self.rows["metric"]])
        return effects.equivalence_frame(self.rows, lower, self.alpha, margin, relative, self._shift)

    @property
    def _shift(self) -> float | None:
        """What geometric means add to each value (`Sample`); None for other averages, which are tested as they are."""
        average = Averaging(average=self.step.settings.get("average", "mean"))
        return logarithm(average.kind).get("shift")

    def _smallest_differences(self, rows: pl.DataFrame) -> Floats:
        return effects.smallest_differences(rows, shift=self._shift)

    def no_worse(
        self,
        system: str | Sequence[str] | None = None,
        *,
        than: str | None = None,
        by: str | float,
        metrics: str | Sequence[str] | None = None,
    ) -> Gate:
        """Return whether a system is shown to be no worse than another by more than a margin; see `gate`.

        The result is true only if it is shown for every system and metric named.

        Parameters
        ----------
        system
            The system, or several; by default, all except ``than``.
        than
            The system to compare with; by default, the baseline of this comparison.
        by
            The margin: a share of the average of ``than``, such as ``"1%"``, or an amount, such as 0.01.
        metrics
            Which metrics; all by default.

        Examples
        --------
        >>> from cranfield import compare
        >>> old = [0.52, 0.61, 0.43, 0.70, 0.55, 0.66, 0.48, 0.59]
        >>> new = [0.53, 0.60, 0.44, 0.71, 0.55, 0.67, 0.48, 0.60]
        >>> bool(compare({"new": new, "old": old}).no_worse("new", than="old", by="1%"))
        True
        """
        return self._gate(system, than, gate_facts.Margin.read(by), metrics)

    def better(
        self,
        system: str | Sequence[str] | None = None,
        *,
        than: str | None = None,
        metrics: str | Sequence[str] | None = None,
    ) -> Gate:
        """Return whether a system is shown to be better than another, one-sided; see `no_worse`."""
        return self._gate(system, than, NO_MARGIN, metrics)

    def _gate(
        self,
        system: str | Sequence[str] | None,
        than: str | None,
        margin: gate_facts.Margin,
        metrics: str | Sequence[str] | None,
    ) -> Gate:
        if not self.samples:
            raise SettingError(
                "this comparison was read from a folder, and holds no values by user; compare the scores again, as in "
                "cf.compare(results.findings(data).scores)"
            )
        base = than or self.baseline
        if base is None:
            raise SettingError("a gate needs the system to measure against; name it, as in than='old'")
        base = self._named(base)
        systems = [known for known in self.systems if known != base] if system is None else _listed(system)
        systems = [self._named(name) for name in systems]
        if base in systems or not systems:
            raise SettingError(f"{base!r} cannot be measured against itself; name another system")
        names = self.metrics if metrics is None else _listed(metrics)
        if not names:
            raise SettingError("a gate needs a metric; name at least one, or leave metrics=... out")
        for name in names:
            self.of_metric(name)
        data = pairs_with([sample for sample in self.samples if sample.metric in names], systems, base)
        # The sample holds logarithms already, so Student's test of the logarithms is Student's test of its values.
        spelling = "student" if parse(self.significance).name == "log_student" else self.significance
        test = chosen_test(data, spelling, self.alpha, self.step.settings["seed"])
        entries = dict(zip(self.metrics, self.entries))
        return gate(data, test, spelling, self.alpha, margin, [entries.get(sample.metric) for sample in data])

    def _named(self, name: str) -> str:
        """Return the system with this name, which may be its spelling or its display name."""
        system = system_among(name, self.systems) if isinstance(name, str) else None
        if system is None:
            raise SettingError(f"there is no system {name!r}{nearest(str(name), self.systems)}")
        return system

    def facts(self) -> list[Fact]:
        """Return the answer by the main metric, what the other metrics say, and what to keep in mind.

        The answer has at most 25 words: who is better, by how much and how sure, or what these users could have shown.
        Its p-value is corrected and its interval holds for all pairs at once, like those of the figure and the table.
        For a gate, these are the facts of its claim.
        """
        if self.gate is not None:
            return [*self.gate.facts(), *self.doubts]
        known, without = self.standings, self._standings[1]
        said: list[Fact] = [] if self.main is None else [self.main]
        others = tuple(standing for standing in known if standing is not self.main and standing.role in _WITH_WINNERS)
        if self.main is not None and others:
            said.append(comparison_facts.OtherMetrics(self.main, others))
        means = [comparison_facts.ByMeans(self.beside)] if self.beside else []
        return [*said, *means, *without, *self.doubts]

    @cached_property
    def main(self) -> comparison_facts.MetricStanding | None:
        """How systems stand by the main metric: the first of accuracy or value; None if nothing was measured."""
        known = self.standings
        return next((standing for standing in known if standing.role in _WITH_WINNERS), next(iter(known), None))

    @property
    def standings(self) -> list[comparison_facts.MetricStanding]:
        """How systems stand by each metric that has a result."""
        return self._standings[0]

    @cached_property
    def _standings(self) -> tuple[list[comparison_facts.MetricStanding], list[comparison_facts.Unmeasured]]:
        """How systems stand by each metric, and the metrics by which nothing can be said."""
        # Only this column of `power` is computed: the others are slow if there are many pairs.
        rows = self.rows.with_columns(smallest_difference=self._smallest_differences(self.rows))
        known: list[comparison_facts.MetricStanding] = []
        without: dict[comparison_facts.Unmeasured, list[str]] = {}
        for m, metric in enumerate(self.metrics):
            standing = self._standing(m, rows.filter(pl.col("metric") == metric))
            if isinstance(standing, comparison_facts.MetricStanding):
                known.append(standing)
            else:
                without.setdefault(standing, []).append(metric)
        return known, [replace(reason, metrics=tuple(names)) for reason, names in without.items()]

    @property
    def paragraph(self) -> comparison_facts.ResultsParagraph | None:
        """The results as a paragraph for a paper; None without a metric that has winners."""
        if self.main is None or self.main.role == "description":
            return None
        comparisons = len(self.of_metric(self.main.metric))
        return comparison_facts.ResultsParagraph(self.main, self.significance, self.correction, self.alpha, comparisons)

    @property
    def doubts(self) -> list[Fact]:
        """What to keep in mind, what matters most first: inputs, users without lists, trainings, intervals."""
        doubts: list[Fact] = [*([] if self.main is None else self.main.untold)]
        doubts += [comparison_facts.Warned(warning) for warning in self.warnings]
        if self.served is not None:
            doubts.append(self.served if self.common is None else self._shortfall(self.served, self.common))
        doubts += self.made_for
        if self.trained_once:
            doubts.append(comparison_facts.TrainedOnce(self.trained_once))
        if self.spread:
            spread = dict(zip(self.systems, self.spread[0]))
            smallest = self._smallest_of_repetitions
            doubts.append(comparison_facts.Spread(self.repetitions, self.metrics[0], spread, self.same_split, smallest))
        if self.main is not None and self.main.metric in self.nothing_disliked:
            doubts.append(comparison_facts.NothingDisliked(self.main.name))
        return doubts + self._disagreements

    @property
    def _smallest_of_repetitions(self) -> tuple[float, ...]:
        """The smallest differences by the first metric that pairs can show, of those that repetitions limit.

        There the degrees of freedom are close to those of repetitions, since most of the variance is between these.
        """
        few = pl.col("degrees") < pl.min_horizontal(2 * (self.repetitions - 1), pl.col("n") - 1)
        limited = self.of_metric(self.metrics[0]).filter(few)
        return tuple(np.sort(self._smallest_differences(limited)).tolist())

    def _shortfall(self, served: comparison_facts.Served, common: Comparison) -> comparison_facts.Served:
        """Return how many users each system serves, with the answer among users that all serve if it is another one."""
        main, among = self.main, common.main
        alike = main is None or among is None or (main.metric, main.winners) == (among.metric, among.winners)
        others = None if alike or among is None else replace(among, population=None)
        return replace(served, common=common.population, among_them=others)

    @property
    def _disagreements(self) -> list[Fact]:
        """Return each difference whose test and interval disagree on whether it differs from 0."""
        included = (pl.col("lower") <= 0) & (pl.col("upper") >= 0)
        of_its_own = self.correction not in ("none", "max_t") and len(self.rows) > len(self.metrics)
        remarks: list[Fact] = []
        for significant in (True, False):
            rows = self.rows.filter(pl.col("significant") == significant, included == significant)
            rows = rows.filter(pl.col("lower").is_not_nan(), pl.col("p").is_not_nan())
            pairs = tuple((metric, a, b) for metric, a, b in rows.select(*effects.PAIR).iter_rows())
            if pairs:
                correction = self.correction if of_its_own else ""
                remarks.append(comparison_facts.Disagreement(pairs, significant, self.significance, correction))
        return remarks

    def _standing(self, m: int, rows: pl.DataFrame) -> comparison_facts.MetricStanding | comparison_facts.Unmeasured:
        """Return how systems stand by a metric, or why nothing can be said, without the metric's name."""
        means = {system: mean for system, mean in self._means(m).items() if not np.isnan(mean)}
        others = tuple(system for system in self.systems if system not in means)
        if not means:
            return comparison_facts.Unmeasured((), self.nothing_relevant, self.population)
        if len(means) == 1 or self.baseline not in (None, *means):
            return comparison_facts.Unmeasured((), undefined_for=others)
        rows = rows.filter(pl.col("system_a").is_in(list(means)) & pl.col("system_b").is_in(list(means)))
        return comparison_facts.MetricStanding(
            self.metrics[m],
            tuple(rows.iter_rows(named=True)),
            means,
            self.lower_is_better[m],
            self.baseline,
            self.population,
            others,
            properties_of(self.metrics[m]).role,
            metric_label(self.metrics[m]),
        )

    def _means(self, m: int) -> dict[str, float]:
        return {self.systems[s]: float(self.averages[s, m]) for s in self.order(m)}

    @property
    def tested(self) -> str:
        """How it was tested, in words."""
        spelled = parse(self.significance)
        settings = str(spelled).removeprefix(spelled.name)
        name = comparison_facts.TESTS.get(spelled.name, f"{spelled.name} test")
        test = f"{name.removeprefix('a ').removeprefix('the ')}{f' {settings}' if settings else ''}"
        if self.spread:
            of_signs = " of signs" if spelled.name == "sign" else ""
            test = f"t-test{of_signs} over users crossed with {self.repetitions} repetitions (in place of the {test})"
        correction = comparison_facts.CORRECTIONS.get(self.correction, f"with {self.correction}")
        corrected = [] if spelled.name == "tukey" else [correction]  # it corrects by itself
        return ", ".join([test, *corrected, f"level {self.alpha:g}"])

    @property
    def caption(self) -> str:
        """How it was averaged and tested, in one line."""
        settings = self.step.settings
        averaged = {name: value for name, value in settings.items() if name != "coverage" or not self.population}
        said = [self.tested, *averaging_phrases(averaged, self.metrics, self.left_out)]
        return "; ".join([*said, *sentences(filter(None, (self.population, self.relevance)))])

    @property
    def intervals(self) -> str:
        """What the intervals of differences are, in one line: with corrected p-values they hold simultaneously."""
        level = f"{100 * (1 - self.alpha):g} % intervals"
        if parse(self.significance).name == "tukey":
            return f"{level} that hold for all pairs at once"
        if self.correction == "none":
            return f"{level}, for each pair separately"
        if len(self.rows) <= len(self.metrics):
            return level
        same = (
            ", as corrected p-values do" if self.correction == "max_t" else f" (max-|t|; p-values: {self.correction})"
        )
        return f"{level} that hold for all pairs of a metric at once{same}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Which users and lists count, and how."""
        return () if self.counted is None else self.counted.notes

    def table(self) -> Table:
        """Return the pairs as a table for people."""
        return effects.pairs_table(self.rows, self.alpha, self.caption, (f"in brackets: {self.intervals}", *self.notes))

    def summary(self) -> Table:
        """Return systems × metrics, best first: best in bold, second underlined, and what is significant marked."""
        winners = [properties_of(metric).has_winners for metric in self.metrics]
        ranks = [places(self.averages[:, m], lower, 4) for m, lower in enumerate(self.lower_is_better)]

        def cell(s: int, m: int) -> Cell:
            rank = ranks[m][s] if winners[m] else -1
            return Cell(number_text(self.averages[s, m]), rank == 0, rank == 1)

        first = 0 if self.main is None else self.metrics.index(self.main.metric)
        rows = [[Cell(self.systems[s]), *(cell(s, m) for m in range(len(self.metrics)))] for s in self.order(first)]
        return self.marked(Table(["system", *map(metric_label, self.metrics)], rows, self.caption, self.notes))

    def marked(self, table: Table) -> Table:
        """Return a table of systems × metrics with what is significant, which its caption explains.

        Systems that share a letter do not differ significantly; with a baseline, † is better and ‡ worse than it.
        """
        marks = {(metric_label(metric), system): mark for (metric, system), mark in self.marks().items()}
        if not marks:
            return table
        rows = [
            [replace(cell, raised=marks.get((name, row[0].text), "")) for name, cell in zip(table.header, row)]
            for row in table.cells()
        ]
        population = f"; {self.population}" if self.population and str(self.population) not in table.caption else ""
        marked = f"{self.key_to_marks.removesuffix('.')} ({self.tested}{population})"
        return replace(table, rows=rows, caption=f"{table.caption}. {marked}" if table.caption else marked)

    def differences(self) -> Table:
        """Return the differences of the main metric from the baseline, or how much worse than the best each is.

        The averages are marked as in `summary`. Signs are those of the verdict.
        """
        if self.main is None:
            return Table(["system"], [], self.caption, self.notes)
        main, reference = self.main, self.main.reference
        of_best, level = self.baseline is None, f"{100 * (1 - self.alpha):g} % interval"
        header = ["system", main.name, "worse by" if of_best else "difference", level, "p", "d_z",
                  "better/equal/worse"]  # fmt: skip
        rows: list[list[str | Cell]] = []
        marks, ranks = self.marks(), places(np.array([*main.means.values()]), main.lower_is_better, main.digits)
        for rank, (system, mean) in zip(ranks, main.means.items()):
            cells = ["–"] * 5
            if system in main.against:
                lead = main.pair(system, reference)
                row, forward = lead.row, lead.row["system_a"] == system
                counts = [f"{row[name]:,}" for name in ("wins", "ties", "losses")][:: 1 if forward else -1]
                effect = number_text(row["effect"] if forward != of_best else -row["effect"], 2, sign="+")
                shown = lead.loss if of_best else lead
                size = str(shown) if of_best else lead.signed
                cells = [size, shown.ends or "–", p_text(row["p_corrected"]), effect, "/".join(counts)]
            marked = Cell(number_text(mean, main.digits), rank == 0, rank == 1, marks.get((main.metric, system), ""))
            rows.append([system, marked, *cells])
        whose = f"worse than {reference}" if of_best else f"against {reference}"
        said = f"{main.name}, {whose}; {self.caption}; {self.intervals}"
        key = f". {self.key_to_marks.removesuffix('.')}" if marks else ""
        return Table(header, rows, f"{said}{key}", self.notes)

    def overview(self) -> Table:
        """Return `summary` for a terminal, with the `differences` of the main metric beside its averages."""
        caption = "; ".join(map(str, filter(None, (self.tested, self.relevance))))
        table = replace(self.summary(), caption=caption, notes=[self.key_to_marks, *self.notes])
        if self.main is None:
            return table
        beside = 2 + self.metrics.index(self.main.metric)
        header, differences = self.differences().header, {row[0]: row for row in self.differences().rows}
        rows = [
            [*row[:beside], *differences.get(Cell.text_of(row[0]), ["–"] * 5)[2:5], *row[beside:]] for row in table.rows
        ]
        whose = "against" if self.baseline is not None else "worse than"
        names = [f"{whose} {self.main.reference}", *header[3:5]]
        return replace(table, header=[*table.header[:beside], *names, *table.header[beside:]], rows=rows)

    def marks(self) -> dict[tuple[str, str], str]:
        """Return what is significant, by metric and system: letters, or † and ‡ against a baseline."""
        if self.baseline is None:
            if not 1 < len(self.systems) <= _MOST_LETTERED:
                return {}
            return {(row["metric"], row["system"]): row["letters"] for row in self.letters().iter_rows(named=True)}
        different = self.rows.filter("significant").select("metric", "system_a", "better")
        return {
            (metric, system): "†" if better == system else "‡"
            for metric, system, better in different.iter_rows()
            if better is not None
        }

    @property
    def key_to_marks(self) -> str:
        """What the marks of `summary` mean."""
        if self.baseline is None:
            return "Systems that share a letter do not differ significantly."
        return f"† significantly better, ‡ significantly worse than {self.baseline}."

    most_drawn = 8
    """The number of differences that the figure shows."""

    @property
    def figures(self) -> Figures:
        """``differences`` by the main metric with their intervals, and ``wins``, the shares of users."""
        from cranfield.comparisons import figures

        return {"differences": figures.differences, "wins": figures.wins}

    def to_latex(self) -> str:
        """Return `summary` in LaTeX (booktabs)."""
        return self.summary().latex()

    def as_dict(self) -> dict[str, Any]:
        """Return the settings, the verdict, the averages (best first) and the rows, ready for JSON (NaN becomes null).

        ``intervals`` says what the intervals in the rows and in the verdict are.
        """
        clean = self.rows.with_columns(pl.selectors.float().fill_nan(None))
        averages = [
            {"metric": metric, "system": system, "mean": None if np.isnan(mean) else mean}
            for m, metric in enumerate(self.metrics)
            for system, mean in self._means(m).items()
        ]
        return {
            **self.step.as_dict(),
            "notes": list(self.notes),
            "verdict": self.verdict,
            "intervals": self.intervals,
            "population": None if self.population is None else str(self.population),
            "averages": averages,
            "rows": clean.to_dicts(),
        }

    def __str__(self) -> str:
        answer, *remarks = self.verdict
        table = self.table() if settings.details else self.overview()
        return answer_and_table(answer, table, [*remarks, *table.notes])

    def __repr__(self) -> str:
        return f"Comparison({len(self.systems)} systems, {len(self.metrics)} metrics, {len(self.rows)} pairs)"


def _listed(names: str | Sequence[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
