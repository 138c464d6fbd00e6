"""What is to be said of an experiment's searches and repetitions: how settings were chosen, and warnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cranfield._own_code import names_code
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stages.data import SPLITS, draws_system, has_same_splits, learning_kind
from cranfield.experiments.stages.models import MODELS, SEARCHES, parameters_of
from cranfield.facts import Fact
from cranfield.facts import experiment as facts
from cranfield.recommenders import fit_takes, recommender

_LONG = 10.0
"""Shorter searches, in seconds, are not compared by time: starting up decides it."""


def how_tuned(line: Pipeline, source: Unit) -> list[Fact]:
    """Return how the settings of each searched system were chosen on a set of ratings."""
    refit = line.decisions.refit
    return [
        facts.Searched(name, search["trials"], search["validation"], search["users"], refit)
        for name, search in _first(line, source)
    ]


def tuning_warnings(line: Pipeline, source: Unit, took: Mapping[str, float] | None = None) -> list[Fact]:
    """Return what weakens the searches on a set of ratings; ``took`` has the seconds of each artifact, if known."""
    warnings: dict[tuple[Any, ...], Fact] = {}
    few: dict[tuple[int, str], list[str]] = {}
    for name, search in _searches(line, source):
        for fact in _of_search(name, search, line.decisions.refit):
            # Of several folds and repetitions, the first one is told.
            key = (type(fact), name, getattr(fact, "parameter", ""))
            if key not in warnings and isinstance(fact, facts.FewValidationUsers):
                few.setdefault((fact.users, fact.validation), []).append(name)
            warnings.setdefault(key, fact)
        if search["follows"]:
            warnings[facts.NewestForValidation, source.source.name] = facts.NewestForValidation(source.source.name)
    others = [fact for fact in warnings.values() if not isinstance(fact, facts.FewValidationUsers)]
    served = [facts.FewValidationUsers(tuple(names), *of) for of, names in few.items()]
    budgets = _budgets(line, source, took or {})
    refits = [*_not_refitted(line, source), *_not_learned_from(line, source)]
    return [*served, *others, *budgets, *_searched_alone(line, source), *refits]


def repetition_facts(line: Pipeline, source: Unit) -> list[Fact]:
    """Return what repetitions vary, if it is not the split."""
    if not has_same_splits(line, source):
        return []
    systems = [system for system in line.experiment.systems if system.run is None]
    drawing = tuple(system.name for system in systems if draws_system(str(system.spelling), line.experiment.base))
    return [facts.TrainingSeeds(line.experiment.repetitions, drawing)]


def _of_search(name: str, search: Mapping[str, Any], refit: bool) -> list[Fact]:
    unused = search["unused"]
    return [*facts.of_search(name, search), *([facts.UnusedInSearch(name, unused, refit)] if unused else [])]


def _searches(line: Pipeline, source: Unit) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each search on a set of ratings: the name of its system, and its record."""
    for cell in line.units("cell", source):
        artifact = line.made(SEARCHES, cell) if SEARCHES.wants(line, cell) else None
        if artifact is not None and artifact.facts:
            yield cell.system.name, artifact.facts


def _first(line: Pipeline, source: Unit) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Return the first search of each system."""
    first: dict[str, Mapping[str, Any]] = {}
    for name, search in _searches(line, source):
        first.setdefault(name, search)
    return first.items()


def _budgets(line: Pipeline, source: Unit, took: Mapping[str, float]) -> Iterator[Fact]:
    trials = {name: float(search["trials"]) for name, search in _first(line, source)}
    seconds = dict.fromkeys(trials, 0.0)
    for cell in line.units("cell", source):
        if cell.system.name in seconds:
            seconds[cell.system.name] += took.get(SEARCHES.name_for(cell), 0.0)
    if len(trials) < 2:
        return
    uneven = _uneven("trials", trials)
    if uneven is not None:
        yield uneven
    if min(seconds.values()) > 0 and max(seconds.values()) >= _LONG:
        uneven = _uneven("seconds", seconds)
        if uneven is not None:
            yield uneven


def _uneven(what: Any, sizes: Mapping[str, float]) -> Fact | None:
    most, least = (choose(sizes.items(), key=lambda entry: entry[1]) for choose in (max, min))
    return facts.UnevenBudget(what, most, least) if most[1] > 2 * least[1] else None


def _searched_alone(line: Pipeline, source: Unit) -> Iterator[Fact]:
    cells = line.units("cell", line.units("part", source)[0])
    searched = tuple(cell.system.name for cell in cells if cell.system.tuning is not None)
    others = tuple(
        cell.system.name
        for cell in cells
        if cell.system.tuning is None and cell.system.run is None and _has_settings(parameters_of(line, cell))
    )
    if searched and others:
        yield facts.SearchedAlone(searched, others)


def _has_settings(parameters: Mapping[str, Any]) -> bool:
    return any(name != "seed" and value is not None for name, value in parameters.items())


def _not_learned_from(line: Pipeline, source: Unit) -> Iterator[Fact]:
    part = line.units("part", source)[0]
    cells = [cell for cell in line.units("cell", part) if cell.system.run is None and cell.system.tuning is None]
    names = tuple(
        cell.system.name
        for cell in cells
        if learning_kind(line, cell) in ("stopped", "apart") and not _may_stop(str(cell.system.spelling))
    )
    if names:
        searched = [search["ratings"] for _, search in _searches(line, source)]
        sizes = line.artifact(SPLITS, part).facts["splits"][part.fold]["split"]["effect"]
        yield facts.NotLearnedFrom(sizes.get("validation") or searched[0], names)


def _may_stop(spelling: str) -> bool:
    """Whether a system may use a validation part; code of others is not imported for the answer."""
    return names_code(spelling) or fit_takes(recommender(spelling), "validation")


def _not_refitted(line: Pipeline, source: Unit) -> Iterator[Fact]:
    cells = line.units("cell", source)
    models = {cell.system.name: line.made(MODELS, cell) for cell in cells if cell.system.run is None}
    names = tuple(name for name, model in models.items() if model is not None and model.facts.get("refitted") is False)
    if names:
        yield facts.NotRefitted(names)
