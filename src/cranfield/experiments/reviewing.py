"""The reviewer's list: what reproducibility tracks and papers ask for, filled in from the record of an experiment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cranfield._errors import SettingError
from cranfield._files import meant
from cranfield._numbers import count_text, listed, percent_text, time_text
from cranfield._own_code import names_code
from cranfield._registry import parse
from cranfield._table import Cell, Table, markdown_text
from cranfield.data import Ratings, describe, read
from cranfield.experiments.card import points_of, to_report
from cranfield.experiments.experiment import System
from cranfield.experiments.results import Results
from cranfield.experiments.stages import SEARCHES
from cranfield.experiments.trials import Range
from cranfield.experiments.tuned import how_tuned, tuning_warnings
from cranfield.facts import experiment as experiment_facts
from cranfield.facts import sentences
from cranfield.metrics import METRICS, known_metrics
from cranfield.rankings import Run, read_runs
from cranfield.splits import check_split, recorded_steps

_AREAS = {
    "A1": "data", "A2": "split", "B1": "users", "B2": "lists", "C1": "lists", "C2": "metrics", "C3": "averages",
    "C4": "averages", "D": "tests",
}  # fmt: skip
_ORDER = ("data", "split", "users", "lists", "candidates", "systems", "tuning", "metrics", "averages", "tests", "code",
          "seeds", "hardware", "time")  # fmt: skip


@dataclass(frozen=True)
class Review:
    """The points that a reviewer looks for, with what is reported about each."""

    title: str  # what was reviewed
    # The points, in the order of an experiment; ``area`` is what each belongs to.
    items: tuple[experiment_facts.Point, ...]

    @classmethod
    def of(cls, title: str, items: Sequence[experiment_facts.Point]) -> Review:
        """Return the points in the order of an experiment."""
        return cls(title, tuple(sorted(items, key=lambda item: _ORDER.index(item.area))))

    @property
    def missing(self) -> tuple[experiment_facts.Point, ...]:
        """The points about which nothing is reported."""
        return tuple(item for item in self.items if item.reported is None)

    def markdown(self) -> str:
        """Return the list with a checkbox for each point."""
        lines = [f"# Checklist: {markdown_text(self.title)}", "", str(self.verdict), ""]
        for area in dict.fromkeys(item.area for item in self.items):
            lines += [f"## {area.capitalize()}", ""]
            for item in (entry for entry in self.items if entry.area == area):
                lines.append(f"- [{item.mark}] {item.topic}: {markdown_text(item.state)}")
            lines.append("")
        return "\n".join(lines).rstrip() + "\n"

    def table(self) -> Table:
        """Return the list as a table; missing points are in bold."""
        rows: list[list[str | Cell]] = []
        for item in self.items:
            missing = Cell(f"missing: {item.remedy}", best=True)
            rows.append([item.area, item.topic, missing if item.reported is None else item.state])
        caption = f"Checklist: {self.title.rstrip('.')} ({str(self.verdict).rstrip('.')})"
        return Table(["area", "point", "reported"], rows, caption, label="tab:checklist")

    def latex(self) -> str:
        """Return the list as a LaTeX table for an appendix; long text wraps within its column."""
        wrapped = r"\begin{tabular}{lp{0.3\linewidth}p{0.5\linewidth}}"
        return self.table().latex().replace(r"\begin{tabular}{lll}", wrapped)

    def as_dict(self) -> dict[str, Any]:
        """Return the list, ready for JSON."""
        points = [dict(zip(("area", "point", "reported", "remedy", "warning"), item.entry)) for item in self.items]
        return {"title": self.title, "missing": len(self.missing), "points": points}

    @property
    def verdict(self) -> experiment_facts.Completeness:
        """How many points are reported, and which are missing."""
        return experiment_facts.Completeness.of(self.items)

    def __str__(self) -> str:
        return self.markdown()


def review(source: str | Path | Ratings, test: Any = None, runs: Any = (), **reading: Any) -> Review:
    """Return the reviewer's list of an experiment, filled in from its record; what is missing is marked.

    The list covers what the reproducibility tracks of ACM conferences and the papers behind this package ask authors to
    report: data, filters, split, candidates, systems and how each of them was tuned (ranges and budget), metrics
    with their definitions, tests, code, seeds, hardware and time.

    Parameters
    ----------
    source
        The folder of an experiment; or the training ratings of an experiment made elsewhere, as a file or `Ratings`.
    test, runs
        The test part and the ranked lists of an experiment made elsewhere. Whatever these files do not say is missing.
    reading
        How to read its ratings; see `cranfield.read`.
    """
    if test is None and not isinstance(source, Ratings) and meant(source).is_dir():
        return _of_experiment(Results(meant(source)))
    if test is None:
        raise SettingError(f"{source} is not the folder of an experiment; give one, or the training and the test file")
    return _of_files(source, test, runs, reading)


def _of_experiment(results: Results) -> Review:
    card = results.card()
    items = [
        replace(point, area=_AREAS.get(point.area, point.area))
        for point in points_of(card)
        if point.topic != "how the hyper-parameters were chosen, without the test part"
    ]
    seeds = ", ".join(map(str, card["seeds"]))
    seeded = to_report("seeds", "every seed", f"{seeds}; the seeds of random splits and systems are derived from it")
    further = [
        _candidates(card),
        *_tuning(results, card),
        *_searched(results),
        _definitions(card),
        _code(results, card),
    ]
    return Review.of(card["title"], [*items, *further, seeded, _hardware(results, card), _time(results)])


def _candidates(card: Mapping[str, Any]) -> experiment_facts.Point:
    decisions = card["decisions"]
    pool = {
        "all": "all items of the data",
        "test": "items with a test rating",
        "group": "the popularity group of the item",
    }
    said = [pool.get(decisions["candidates"], str(decisions["candidates"]))]
    said.append(
        {"allow": "with those that the user had before", "only": "of which only those that the user had before"}.get(
            decisions["repeats"],
            "with the items seen in training" if decisions["keep_seen"] else "without those seen in training",
        )
    )
    if decisions["relevant"] == "one":
        said.append("one relevant item in each list")
    if decisions["nonrelevant"] != "all":
        said.append(f"{decisions['nonrelevant']} non-relevant ones drawn")
    if decisions["unrated"] != "all":
        said.append(f"{decisions['unrated']} unrated ones drawn")
    if decisions["draws"] == "exact":
        said.append("in expectation over all draws")
    return to_report("candidates", "which items a list may hold", ", ".join(said))


def _tuning(results: Results, card: Mapping[str, Any]) -> Iterator[experiment_facts.Point]:
    for system in results.experiment.systems:
        facts = card["systems"][system.name]
        yield to_report(
            "tuning",
            f"how {system.name} was tuned: ranges, budget, and selection criterion",
            _tuned(results, system, facts) or card["notes"].get("tuning"),
            f"let the file search the hyper-parameters of {system.name}, with the budget of the other systems, or say "
            "how they were chosen, as tuning under [notes]",
        )


def _searched(results: Results) -> Iterator[experiment_facts.Point]:
    """Yield how the searches went, with warnings, if there are any."""
    took = results.line.store.took()
    said, warnings = list[str](), list[str]()
    for source in results.line.units("source"):
        said += sentences(how_tuned(results.line, source))
        warnings += sentences(tuning_warnings(results.line, source, took))
    if said:
        words, weak = (" ".join(dict.fromkeys(texts)) for texts in (said, warnings))
        yield to_report("tuning", "whether the searches were wide, large and fair enough", words, warning=weak)


def _tuned(results: Results, system: System, facts: Mapping[str, Any]) -> str | None:
    if system.tuning is None or not facts["searches"]:
        if facts["parameters"] is None:
            return None
        set_to = [name for name, value in facts["parameters"].items() if name != "seed" and value is not None]
        return None if set_to else "it sets no hyper-parameters"
    space = "; ".join(f"{name} {_range(values)}" for name, values in system.tuning.space.items())
    search, took = facts["searches"][0], results.line.store.took()
    cells = [cell for cell in results.line.units("cell") if cell.system.name == system.name]
    seconds = sum(took.get(SEARCHES.name_for(cell), 0.0) for cell in cells)
    epochs = "" if search["epochs"] is None else f", {count_text(search['epochs'], 'epoch')}"
    error = "" if search["error"] is None else f" ± {search['error']:.4f}"
    refit = "refitted" if results.line.decisions.refit else "not refitted"
    measured = f"{search['metric']} on {search['validation']} ({search['users']:,} users)"
    return (
        f"{space}: {search['trials']} trials by {measured}, "
        f"best {search['best']} ({search['value']:.4f}{error}){epochs}, {refit}; {time_text(seconds)} in all"
    )


def _range(values: Any) -> str:
    if isinstance(values, Range):
        return f"from {values.low:g} to {values.high:g}{' on a log scale' if values.log else ''}"
    return f"of {', '.join(map(str, values))}"


def _definitions(card: Mapping[str, Any]) -> experiment_facts.Point:
    known = known_metrics()
    said, metrics = {}, card["decisions"]["metrics"]
    for name in (parse(spelled).name for spelled in metrics):
        if any(name.lower() == metric.lower() for metric in known):
            said[str(METRICS.find(name).name)] = METRICS.find(name).summary
    own = [spelled for spelled in metrics if parse(spelled).name not in said]
    return to_report(
        "metrics",
        "the definitions of the metrics",
        None if own else " ".join(f"{name}: {summary}" for name, summary in said.items()),
        f"say how {', '.join(own)} is defined",
    )


def _code(results: Results, card: Mapping[str, Any]) -> experiment_facts.Point:
    own = [
        system.name for system in results.experiment.systems if system.spelling is None or names_code(system.spelling)
    ]
    versions = ", ".join(f"{name} {number}" for name, number in card["versions"].items())
    stated = card["notes"].get("code")
    return to_report(
        "code",
        "the code, where it is available, and the versions",
        f"{stated}; {versions}" if stated else None if own else f"all systems are from cranfield: {versions}",
        f"say where the code of {listed(own or [''])} is available, as code under [notes]",
    )


def _hardware(results: Results, card: Mapping[str, Any]) -> experiment_facts.Point:
    logged = [entry.get("machine") for entry in results.line.store.logged()]
    machines = "; ".join(dict.fromkeys(machine for machine in logged if isinstance(machine, str)))
    stated = card["notes"].get("hardware") or machines or None
    return to_report("hardware", "the hardware", stated, "say what it ran on, as hardware under [notes]")


def _time(results: Results) -> experiment_facts.Point:
    took = {name: seconds for name, seconds in results.line.store.took().items() if name in results.line.artifacts}
    by_stage: dict[str, float] = defaultdict(float)
    for name, seconds in took.items():
        by_stage[name.partition("/")[0]] += seconds
    said = ", ".join(f"{stage} {time_text(seconds)}" for stage, seconds in by_stage.items() if seconds >= 1)
    whole = f"{time_text(sum(took.values()))} in all" + (f" ({said})" if said else "")
    remedy = "run the experiment again, so that its log records it"
    return to_report("time", "how long it took", whole if took else None, remedy)


def _of_files(train: Any, test: Any, runs: Any, reading: Mapping[str, Any]) -> Review:
    """Return the list of an experiment that is only known from files: what they say, and what they do not."""
    learned, judged = (
        part if isinstance(part, Ratings) else read(part, **{**reading, "repeated": "last"}) for part in (train, test)
    )
    ranked = read_runs(runs) if runs else []
    items = [
        *_data_of_files(learned, judged),
        *_split_of_files(check_split(learned, judged)),
        *_recorded_split(train),
        *_lists_of_files(ranked, judged),
    ]
    known = [item.topic for item in items]
    untold = [to_report(area, topic, None, _STATE) for topic, area in _UNTOLD.items() if topic not in known]
    return Review.of(learned.name or "an experiment", [*items, *untold])


def _data_of_files(train: Ratings, test: Ratings) -> Iterator[experiment_facts.Point]:
    for name, part in (("training", train), ("test", test)):
        facts = describe(part)
        said = f"{facts.users:,} users, {facts.items:,} items, {facts.ratings:,} ratings, density {facts.density:.3%}"
        yield to_report("data", f"the size and density of the {name} part", said)


def _recorded_split(train: Any) -> Iterator[experiment_facts.Point]:
    """Yield what the record next to the training file says about the split, if `cranfield split` wrote it."""
    steps = recorded_steps(meant(train).parent) if isinstance(train, str | Path) else ()
    if steps:
        filters = [str(step) for step in steps[:-1] if step.action != "read"]
        yield to_report("data", _FILTERS, "; ".join(filters) or "none")
        yield to_report("split", _DIVIDED, str(steps[-1]))


def _split_of_files(examined: Any) -> Iterator[experiment_facts.Point]:
    for point, names in _OF_SPLIT.items():
        sentences = [finding.sentence for finding in examined.findings if finding.about.startswith(names)]
        yield to_report("split", point, " ".join(sentences))


def _lists_of_files(runs: Sequence[Run], test: Ratings) -> Iterator[experiment_facts.Point]:
    tested = test.compact().user_ids
    said = []
    for run in runs:
        served = tested.codes(run.user_ids.ids(run.users))
        share = len(set(served[served >= 0].tolist())) / len(tested)
        longest = int(run.list_lengths.max(initial=0))
        said.append(f"{run.name}: lists of up to {longest} items for {percent_text(share)} of the test users")
    topic = "the systems, and coverage in addition to effectiveness"
    yield to_report("systems", topic, "; ".join(said) or None, "give their ranked lists")


_OF_SPLIT = {
    "overlap, leakage and cold starts": ("overlap", "repeated", "leakage", "cold start"),
    "shifts from training to test, with their sizes": ("shift",),
}
_STATE = "the files do not say; state it in the paper"
_FILTERS, _DIVIDED = "filters, with their thresholds and effect", "how training and test were divided"
_UNTOLD = {
    "where the data are available": "data",
    _FILTERS: "data",
    _DIVIDED: "split",
    "which users are served": "users",
    "which items a list may hold": "candidates",
    "full or condensed lists, and unrated items": "lists",
    "the systems and their hyper-parameters": "systems",
    "how every system, including the baselines, was tuned: ranges, budget, and selection criterion": "tuning",
    "the metrics with depth and gain, and their definitions": "metrics",
    "the rating that makes an item relevant": "metrics",
    "how values are aggregated over users, and users without a list": "averages",
    "a statistical test, the p-values and the correction": "tests",
    "the code, where it is available, and the versions": "code",
    "every seed": "seeds",
    "the hardware": "hardware",
    "how long it took": "time",
}
"""What files cannot say, and the area it belongs to."""
