"""The truth about systems: true values that are given or computed, and which options come closest to their order."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError, nearest
from cranfield._files import meant
from cranfield._registry import parse
from cranfield.audits.contributions import Leads, UserContributions, interval
from cranfield.audits.grid import Floats, Grid, VariedDecision, number_or_none
from cranfield.audits.options import SYSTEMS, split_parameter, with_parameter
from cranfield.audits.parsing import AuditSettings, text_of
from cranfield.data import Ratings
from cranfield.experiments import SIMULATIONS, Experiment, Source, filtered, input_checksum
from cranfield.measures import true_values as estimated
from cranfield.rankings import Ranking, Run, rank_under
from cranfield.recommenders import recommender
from cranfield.simulate import METRICS, World, parse_metric
from cranfield.splits import truths

OrderSigns = NDArray[np.int8]

OPTION_KINDS = {
    **dict.fromkeys(("decision", "kind", "option"), pl.String),
    "cells": pl.Int64,
    **dict.fromkeys(("tau", "lower", "upper"), pl.Float64),
}
PAIR_KINDS = {
    **dict.fromkeys(("system_a", "system_b"), pl.String),
    **dict.fromkeys(("true_a", "true_b"), pl.Float64),
    "truly_better": pl.String,
    **dict.fromkeys(("right", "lower", "upper", "right_significantly", "wrong_significantly"), pl.Float64),
}


@dataclass(frozen=True, eq=False)
class KnownValues:
    """The true value of every system, where larger is better."""

    source: str  # what they are, in words
    by: tuple[str, ...]  # the varied decisions on which they depend: the data, and the parameters of systems
    table: Mapping[tuple[str, ...], tuple[float, ...]]  # of all systems, by the options of these decisions

    def of_cells(self, grid: Grid) -> Floats:
        """Return systems × cells; NaN for cells whose truth is not known."""
        words = [grid.words(cell) for cell in range(grid.n_cells)]
        known = [self.table.get(tuple(own[name] for name in self.by)) for own in words]
        width = len(next(iter(self.table.values())))
        return np.array([[np.nan] * width if values is None else values for values in known]).T


def check_truth(truth: Any, experiment: Experiment) -> None:
    """Raise an error for an unusable truth: an unknown system, an unreadable file, data without a truth."""
    metric = _world_metric(truth)
    if metric is None:
        stated_values(truth, [system.name for system in experiment.systems], experiment.path)
        return
    name = parse_metric(metric).name
    if not any(_is_world(source) or _has_judgments(source) for source in experiment.data):
        raise SettingError(
            f"audit.truth={metric} needs data whose truth is known: a simulated world (simulate = 'world(...)') or a "
            "dataset with ratings of random items (coat, cm100k, ...); or give the true value of each system"
        )
    if name != "P" and any(map(_has_judgments, experiment.data)):
        raise SettingError(f"audit.truth={metric}: judgments of random items tell the true precision; write P@10")
    for system in experiment.systems:
        if system.tuning is not None:
            raise SettingError(
                f"audit.truth={metric} trains every system on all ratings, and the parameters of systems.{system.name} "
                "are searched in a part of them; state the parameters, or give the true value of each system"
            )


def given_truth(truth: Any, systems: Sequence[str]) -> dict[str, float] | None:
    """Return the true values of systems whose lists are given: by name, or from a file; None without any."""
    if truth is None:
        return None
    if (metric := _world_metric(truth)) is not None:
        raise SettingError(f"truth={metric} needs systems that are trained here; give the true value of each system")
    return dict(zip(systems, stated_values(truth, systems)))


def from_here(truth: Any) -> Any:
    """Return a truth whose file name is relative to the current folder instead of that of the experiment."""
    return str(meant(truth).absolute()) if isinstance(truth, str) and _world_metric(truth) is None else truth


def truth_made_of(truth: Any, experiment: Experiment) -> Any:
    """Return what true values depend on besides the experiment: the table, the metric, or the bytes of the file."""
    if not isinstance(truth, str) or _world_metric(truth) is not None:
        return truth
    return [Path(truth).name, input_checksum(experiment.path(truth))]


def true_values(truth: Any, settings: AuditSettings) -> KnownValues:
    """Return the true values of the systems of an audit, which depend on the parameters of systems and on the data.

    They are given by system, or in a file with the columns ``system`` and ``value``; or computed by ``P@n``,
    ``Recall@n`` or ``nDCG@n`` in simulated worlds, and by ``P@n`` for a dataset with ratings of random items. Each
    system is then trained on all observed ratings, with the filters of the starting point, and ranks the items that the
    user has not rated, as in production. The value is the mean over all users of the metric with every item judged;
    with ratings of random items it is estimated (`cranfield.measures.true_values`).
    """
    metric = _world_metric(truth)
    if metric is not None:
        return _of_data(metric, settings)
    names = [system.name for system in settings.experiment.systems]
    values = stated_values(truth, names, settings.experiment.path)
    parameters = _parameters(settings)
    own = tuple(decision.options[decision.start] for decision in parameters)
    called = f"the values in {Path(truth).name}" if isinstance(truth, str) else "the given values"
    return KnownValues(called, tuple(decision.name for decision in parameters), {own: values})


def _parameters(settings: AuditSettings) -> list[VariedDecision]:
    """Return the varied parameters of systems."""
    return [decision for decision in settings.varied if decision.name.startswith(SYSTEMS)]


def _of_data(metric: str, settings: AuditSettings) -> KnownValues:
    """Return the true values on all data whose truth is known, for all options of parameters."""
    experiment, parameters = settings.experiment, _parameters(settings)
    several = [name for name in settings.names if name == "data"]
    sources = experiment.data if several else experiment.data[:1]
    table: dict[tuple[str, ...], tuple[float, ...]] = {}
    for source in sources:
        if not (_is_world(source) or _has_judgments(source)):
            continue
        value_of = (_by_world if _is_world(source) else _by_judgments)(experiment, source, metric)
        for options in product(*(decision.values for decision in parameters)):
            spelled = {system.name: str(system.spelling) for system in experiment.systems}
            for decision, value in zip(parameters, options):
                system, parameter = split_parameter(decision.name)
                spelled[system] = with_parameter(spelled[system], parameter, value)
            key = (*([source.name] if several else []), *map(text_of, options))
            table[key] = tuple(map(value_of, spelled.values()))
    by = (*several, *(decision.name for decision in parameters))
    known = "on all true preferences" if all(map(_is_world, sources)) else "by ratings of random items"
    return KnownValues(f"{metric} {known}", by, table)


def stated_values(truth: Any, systems: Sequence[str], path: Any = Path) -> tuple[float, ...]:
    """Return the values of a table or a file in the order of the systems; raise an error if some are missing."""
    stated = _from_file(path(truth)) if isinstance(truth, str) else truth
    if not isinstance(stated, Mapping):
        raise SettingError(f"audit.truth={truth!r} is not a table of true values; write SYSTEM = VALUE, or name a file")
    for name, value in stated.items():
        if name not in systems:
            raise SettingError(f"audit.truth: there is no system {name!r}{nearest(str(name), systems)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise SettingError(f"audit.truth: the value of {name} is {value!r}; give a number")
    missing = [name for name in systems if name not in stated]
    if missing:
        raise SettingError(f"audit.truth: {missing[0]} has no true value; give one for every system")
    return tuple(float(stated[name]) for name in systems)


def _from_file(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(
            f"the true values cannot be read ({reason})", source=path, remedy="name a CSV file, or a metric: nDCG@10"
        ) from error
    lines = csv.DictReader(text.splitlines(), delimiter="\t" if "\t" in text.split("\n")[0] else ",")
    if not {"system", "value"} <= set(lines.fieldnames or ()):
        raise InputError("the file lacks the columns system and value", source=path, remedy="give a file with them")
    values: dict[str, Any] = {}
    for line in lines:
        if line["system"] in values:
            raise InputError(f"the system {line['system']!r} is listed twice", source=path, remedy="keep one row")
        try:
            values[line["system"]] = float(line["value"])
        except (TypeError, ValueError):
            values[line["system"]] = line["value"]
    return values


def _world_metric(truth: Any) -> str | None:
    """Return the metric that a truth names; None for a table or a file."""
    if not isinstance(truth, str) or Path(truth).suffix in (".csv", ".tsv", ".txt"):
        return None
    try:
        return truth if parse(truth).name in METRICS else None
    except SettingError:
        return None


def _is_world(source: Source) -> bool:
    return source.simulate is not None and parse(source.simulate).name == "world"


def _has_judgments(source: Source) -> bool:
    """Whether a source is a dataset with a test part of random items, separate from what people chose to rate."""
    from cranfield.datasets import find

    return source.dataset is not None and find(source.dataset).parts == ("train", "test")


def _by_world(experiment: Experiment, source: Source, metric: str) -> Callable[[str], float]:
    """Return a function that computes the true value of a system in a simulated world from its spelling."""
    world: World = SIMULATIONS.call(str(source.simulate))
    ratings = filtered(experiment, world.ratings)

    def value(spelling: str) -> float:
        return float(np.nanmean(world.true_value(_run(experiment, spelling, ratings, metric), metric, exclude=ratings)))

    return value


def _by_judgments(experiment: Experiment, source: Source, metric: str) -> Callable[[str], float]:
    """Return a function that estimates the true precision of a system by ratings of random items."""
    from cranfield.datasets import load_pair

    observed, judged = load_pair(str(source.dataset))
    probability = None
    # As in CM100k: a random half is the truth, and the other is for training.
    if np.isin(observed.pairs, judged.pairs).any():
        half = truths.half(observed, judged, seed=experiment.seed)
        observed, judged, probability = half.train, half.judged, half.probability
    truth = truths.given(filtered(experiment, observed), judged, probability=probability)
    cutoff = parse(metric).cutoff or 10

    def value(spelling: str) -> float:
        run = _run(experiment, spelling, truth.train, metric)
        values = estimated(run, truth, cutoff=cutoff, threshold=experiment.decisions.threshold)
        return float(values.mean_precision[0])

    return value


def _run(experiment: Experiment, spelling: str, ratings: Ratings, metric: str) -> Run:
    """Train a system on all ratings, and rank the items that each user has not rated."""
    model = recommender(spelling, experiment.seed).fit(ratings)
    ranking = Ranking(length=parse(metric).cutoff or "all", fill=experiment.decisions.fill)
    (run,) = rank_under(model, ratings, [ranking], seed=experiment.seed)
    return run


@dataclass(frozen=True)
class TruthFindings:
    """The comparison with a known truth, its rows as in `Audit.truth`; if all systems are tied in a cell, tau is 0."""

    source: str
    options: tuple[dict[str, Any], ...]
    pairs: tuple[dict[str, Any], ...]


def truth_of(
    grid: Grid,
    systems: tuple[str, ...],
    truth: KnownValues | Mapping[str, float] | None,
    averages: Floats,
    drawn: Floats,
    terms: UserContributions,
    leads: Sequence[Leads],
) -> TruthFindings | None:
    """Compare the universes with the truth, if it is known for some cell; in averages, larger is better."""
    if truth is None:
        return None
    if not isinstance(truth, KnownValues):
        truth = KnownValues("the given values", (), {(): stated_values(truth, systems)})
    true = truth.of_cells(grid)
    known = np.asarray(~np.isnan(true).any(axis=0), dtype=np.bool_)
    if not known.any():
        return None
    pairs = list(combinations(range(len(systems)), 2))
    true_signs = _signs(true[:, known], pairs)
    cells = grid.universe[known]
    taus = np.zeros((1 + drawn.shape[1], grid.n_cells))
    for own, values in zip(taus, (averages, *np.moveaxis(drawn, 1, 0))):
        own[known] = _tau(true_signs, _signs(values, pairs)[..., cells])
    tested = known & terms.linear[grid.universe]
    rows = [{"decision": None, "kind": None, "option": None, **_mean(grid, taus, known, tested)}]
    for decision, option, mask in grid.by_option():
        if (mask & known).any():
            named = {"decision": decision.name, "kind": decision.kind, "option": option}
            rows.append({**named, **_mean(grid, taus, mask & known, mask & tested)})
    start = true[:, grid.start]
    shares = [
        _pair_row(grid, (systems[a], systems[b]), start[[a, b]], signs, own_leads, drawn[[a, b]], known, tested)
        for (a, b), signs, own_leads in zip(pairs, true_signs, leads)
    ]
    return TruthFindings(truth.source, tuple(rows), tuple(shares))


def _signs(values: Floats, pairs: Sequence[tuple[int, int]]) -> OrderSigns:
    """Return pairs × columns: 1 if the first system of a pair has the larger value, −1 if the second has."""
    first, second = (list(places) for places in zip(*pairs))
    with np.errstate(invalid="ignore"):
        difference = values[first] - values[second]
        # Sums in another order may differ in their last digits, which does not count as a difference.
        equal = np.abs(difference) <= 1e-12 * np.maximum(np.abs(values[first]), np.abs(values[second]))
    return np.where(equal, 0, np.sign(np.nan_to_num(difference))).astype(np.int8)


def _tau(true: OrderSigns, measured: OrderSigns) -> Floats:
    """Return Kendall's tau-b of each column from the signs of all pairs; 0 if either side orders nothing."""
    agree = (true.astype(np.int64) * measured).sum(axis=0)
    ordered = np.abs(true).sum(axis=0, dtype=np.int64) * np.abs(measured).sum(axis=0, dtype=np.int64)
    return np.divide(agree, np.sqrt(ordered), out=np.zeros(agree.shape), where=ordered > 0)


def _mean(grid: Grid, taus: Floats, mask: NDArray[np.bool_], tested: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the weighted mean over some cells; its interval follows from the share of pairs in the true order."""
    mean = float(np.average(taus[0, mask], weights=grid.weights[mask]))
    low = high = None
    if tested.any():
        means = np.average(taus[1:, tested], axis=1, weights=grid.weights[tested])
        low, high = (2 * end - 1 for end in interval((mean + 1) / 2, (means + 1) / 2))
    return {"cells": int(mask.sum()), "tau": mean, "lower": low, "upper": high}


def _pair_row(
    grid: Grid,
    names: tuple[str, str],
    start: Floats,
    true: OrderSigns,
    leads: Leads,
    drawn: Floats,
    known: NDArray[np.bool_],
    tested: NDArray[np.bool_],
) -> dict[str, Any]:
    """Return how often the truly better system of a pair leads; the truth is that of each cell."""
    cells, weights = grid.universe[known], grid.weights[known]
    lead, significant = leads.lead[cells], leads.significant[cells]
    right, wrong = lead * true > 0, lead * true < 0
    total = float(weights.sum())
    share = float(right @ weights) / total
    low = high = None
    inside = tested[known]
    if inside.any():
        signs, own = np.sign(drawn[0] - drawn[1])[:, cells[inside]], weights[inside]
        low, high = interval(share, (signs * true[inside] > 0) @ own / float(own.sum()))
    return {
        "system_a": names[0],
        "system_b": names[1],
        "true_a": number_or_none(start[0]),
        "true_b": number_or_none(start[1]),
        "truly_better": names[0] if start[0] > start[1] else names[1] if start[1] > start[0] else None,
        "right": share,
        "lower": low,
        "upper": high,
        "right_significantly": float((right & significant) @ weights) / total,
        "wrong_significantly": float((wrong & significant) @ weights) / total,
    }
