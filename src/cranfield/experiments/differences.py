"""How two experiments differ in their decisions and in their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from cranfield._numbers import number_text
from cranfield._result import Result
from cranfield._table import Table
from cranfield.experiments.decisions import DECISIONS
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.results import Results
from cranfield.experiments.stages import DATA, SCORES
from cranfield.facts import Fact
from cranfield.facts import experiment as experiment_facts
from cranfield.metrics import kendall_tau_b

_KEY = ["data", "system", "metric"]


@dataclass(frozen=True, eq=False)
class Difference(Result):
    """The result of `diff`."""

    # Settings that differ between the two files: both values, by the name of the decision or key.
    stated: Mapping[str, tuple[Any, Any]]
    # One row per set of ratings, system and metric that both have: ``before, after, change`` of the average, and the
    # places ``rank_before, rank_after`` of the system (1 is best).
    moved: pl.DataFrame
    # One row per set of ratings, metric and pair of systems that both compare, and judge differently:
    # ``better_before`` and ``better_after`` name the significantly better system, or are null.
    verdicts: pl.DataFrame
    # For each set of ratings, Kendall's tau-b between the two orders of the systems, by the first metric of each
    # experiment.
    tau: Mapping[str, float]

    def frame(self) -> pl.DataFrame:
        """Return how the averages moved."""
        return self.moved

    drawn = ("change", "data", "metric", "system")

    def facts(self) -> list[Fact]:
        """Return what differs in the files, how well the orders agree, and which verdicts changed."""
        letters = {name: decision.metadata["letter"] for name, decision in DECISIONS.items()}
        stated = [
            experiment_facts.SettingChange(name, letters.get(name, ""), before, after)
            for name, (before, after) in self.stated.items()
        ]
        return [
            *(stated or [experiment_facts.SettingChange()]),
            *(experiment_facts.OrderChange(data, tau) for data, tau in self.tau.items()),
            *(experiment_facts.VerdictChange(**row) for row in self.verdicts.iter_rows(named=True)),
        ]

    def table(self) -> Table:
        """Return a readable table of how the averages moved."""
        rows = [
            [
                *(row[key] for key in _KEY),
                *(number_text(row[key]) for key in ("before", "after")),
                number_text(row["change"], sign="+"),
                f"{row['rank_before']} → {row['rank_after']}",
            ]
            for row in self.moved.iter_rows(named=True)
        ]
        return Table([*_KEY, "before", "after", "change", "place"], rows)

    def __str__(self) -> str:
        said = "\n".join(self.verdict)
        return f"{said}\n\n{self.table().text()}" if len(self.moved) else f"{said}\nThey measured nothing in common."


def diff(before: str | Path, after: str | Path) -> Difference:
    """Return which decisions differ between two experiments, and how the results moved.

    Parameters
    ----------
    before, after
        The folders of two finished experiments.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.experiments import Decisions, Experiment, Source, run
    >>> one, other = tempfile.mkdtemp(), tempfile.mkdtemp()
    >>> tiny = (Source("tiny", simulate="world(users=60, items=40, ratings=900)"),)
    >>> for folder, threshold in ((one, 4), (other, 3)):
    ...     _ = run(Experiment(data=tiny, decisions=Decisions(metrics="P@10", threshold=threshold)), folder)
    >>> diff(one, other).verdict[0]
    'C2 threshold: 4 → 3'
    """
    first, second = Results(before), Results(after)
    averages = [_ranked(side) for side in (first, second)]
    shared = [data for data in first.data if data in second.data]
    fingerprints = {data: (_fingerprint(first, data), _fingerprint(second, data)) for data in shared}
    other = {f"ratings of {data}": both for data, both in fingerprints.items() if both[0] != both[1]}
    return Difference(
        {**dict(_stated(first.experiment, second.experiment)), **other},
        _moved(*averages),
        _verdicts(*(_whole(side.comparisons()) for side in (first, second))),
        _taus(first, second, *averages),
    )


def _stated(first: Experiment, second: Experiment) -> Iterator[tuple[str, tuple[Any, Any]]]:
    yield from first.decisions.differences(second.decisions).items()
    for key in ("seed", "repetitions"):
        if getattr(first, key) != getattr(second, key):
            yield key, (getattr(first, key), getattr(second, key))
    for kind in ("data", "systems"):
        ours, theirs = ({entry.name: _origin(entry) for entry in getattr(side, kind)} for side in (first, second))
        for name in dict.fromkeys([*ours, *theirs]):
            if ours.get(name) != theirs.get(name):
                yield f"{kind}.{name}", (ours.get(name, "not there"), theirs.get(name, "not there"))


def _fingerprint(results: Results, data: str) -> str:
    facts = results.line.artifact(DATA, results.line.source(data)).facts
    return ", ".join(part["fingerprint"] for part in facts["parts"].values())


def _origin(entry: Any) -> str:
    """Return where ratings or lists come from, without folders, because paths differ between machines."""
    stated = {key: value for key, value in vars(entry).items() if key != "name" and value}
    return ", ".join(
        Path(str(value)).name if key in ("file", "train", "test", "run") else str(value)
        for key, value in stated.items()
    )


def _whole(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.filter(pl.col("fold").is_null()) if frame.width else frame


def _ranked(results: Results) -> pl.DataFrame:
    """Return the averages over all folds with the rank of each system; 1 is the best."""
    averages = _whole(results.averages())
    facts = [results.line.artifact(SCORES, part).facts for part in results.line.units("part")]
    signs = {
        metric: 1 if lower else -1 for fact in facts for metric, lower in zip(fact["metrics"], fact["lower_is_better"])
    }
    # Round, because equal averages of different values may differ in their last digits.
    signed = (pl.col("mean") * pl.col("metric").replace_strict(signs)).round_sig_figs(12)
    return averages.with_columns(rank=signed.rank("min").over("data", "metric").cast(pl.Int64))


def _moved(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    joined = first.select(*_KEY, before="mean", rank_before="rank").join(
        second.select(*_KEY, after="mean", rank_after="rank"), on=_KEY, how="inner", maintain_order="left"
    )
    change = (pl.col("after") - pl.col("before")).alias("change")
    return joined.select(*_KEY, "before", "after", change, "rank_before", "rank_after")


def _verdicts(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Return the pairs on which the two verdicts differ; the systems of a pair may be in either order."""
    pair = ["data", "metric", "system_a", "system_b"]
    schema = dict.fromkeys([*pair, "better_before", "better_after"], pl.String)
    if not first.width or not second.width:
        return pl.DataFrame(schema=schema)
    turned = second.rename({"system_a": "system_b", "system_b": "system_a"})
    after = pl.concat([frame.select(*pair, better_after="better") for frame in (second, turned)])
    joined = first.select(*pair, better_before="better").join(after, on=pair, how="inner", maintain_order="left")
    return joined.filter(pl.col("better_before").ne_missing(pl.col("better_after")))


def _taus(first: Results, second: Results, before: pl.DataFrame, after: pl.DataFrame) -> dict[str, float]:
    """Return, for each set of ratings of both, the agreement of the orders by the first metric of each."""
    leading = [
        ranked.filter(metric=side.experiment.decisions.metrics[0])
        for side, ranked in ((first, before), (second, after))
    ]
    taus = {}
    for data in first.data:
        both = leading[0].filter(data=data).join(leading[1].filter(data=data), on="system", maintain_order="left")
        if len(both) > 1:
            taus[data] = float(kendall_tau_b(both["rank"].to_numpy(), both["rank_right"].to_numpy()))
    return taus
