"""User-defined functions and classes: hashes of their code are part of the inputs of artifacts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from cranfield._errors import SettingError
from cranfield._own_code import allowing, code_hash, is_ours, names_code, source_hash
from cranfield._registry import Registry, parse
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.source import at_key
from cranfield.metrics import GAINS, Metric, as_several
from cranfield.recommenders import recommender


def own(*functions: Callable[..., Any]) -> list[str]:
    """Return a hash of each function that is not ours; the version of cranfield covers the others."""
    return [code_hash(function) for function in functions if not is_ours(function)]


def own_of(registry: Registry[Any], spellings: Iterable[str]) -> list[str]:
    """Return a hash of each spelled function that is not ours."""
    return own(*(registry[parse(spelling).name] for spelling in spellings))


def own_system(spelling: str, experiment: Experiment) -> list[str]:
    """Return what the algorithm of a system depends on, without importing the user's code: see `system_code`."""
    if names_code(spelling):
        return [source_hash(spelling, experiment.base)]
    return system_code(type(recommender(spelling)))


def system_code(system: type[Any]) -> list[str]:
    """Return the version of one of our systems, or a hash of the class of another."""
    return own(system) or [f"version {system.version}"]


def own_metrics(spellings: Iterable[str], experiment: Experiment) -> list[str]:
    """Return a hash of each metric that is not ours, of its declared properties, and of each gain that is not ours.

    If a spelling names code, its source file is hashed without importing it.
    """
    spellings = list(spellings)
    named = [source_hash(spelling, experiment.base) for spelling in spellings if names_code(spelling)]
    metrics = [Metric.of(spelling) for spelling in spellings if not names_code(spelling)]
    definitions = [metric.definition for metric in metrics if not is_ours(metric.definition.function)]
    hashes = [code_hash(getattr(definition, about.name)) for definition in definitions for about in fields(definition)]
    gains = [value for metric in metrics for name, value in parse(str(metric)).parameters if name == "gain"]
    return [*named, *hashes, *own_of(GAINS, gains)]


def _metrics(experiment: Experiment) -> Iterator[tuple[str, Any]]:
    """Yield all metrics that an experiment names, each with its key in the file."""
    yield from (("decisions.metrics", metric) for metric in experiment.decisions.metrics)
    for system in experiment.systems:
        if system.tuning is not None:
            yield f"systems.{system.name}.metric", system.tuning.metric
    yield from (("assess.metrics", metric) for metric in as_several((experiment.assess or {}).get("metrics", ())))
    varied = (experiment.audit or {}).get("vary", {}).get("metrics", ())
    yield from (("audit.vary", metric) for metric in as_several(varied))


@contextmanager
def allowed_code(experiment: Experiment, allow_code: bool) -> Iterator[None]:
    """Allow the code that an experiment names to run; reject the experiment if that is not allowed.

    Code that does not exist, is not a system or metric, or has other parameters is rejected before anything is trained.
    """
    systems = [(f"systems.{system.name}", str(system.spelling)) for system in experiment.systems]
    systems = [(key, spelling) for key, spelling in systems if names_code(spelling)]
    metrics = [(key, spelling) for key, spelling in _metrics(experiment) if names_code(spelling)]
    named = [*systems, *metrics]
    if named and not allow_code:
        key, spelling = named[0]
        raise SettingError(
            f"{key} names code, {parse(spelling).name}, which is only run if it is allowed; look at it first, and then "
            "give --allow-code (allow_code=True)"
        )
    with allowing([spelling for _, spelling in named], experiment.base):
        for key, spelling in systems:
            with at_key(key):
                recommender(spelling)
        for key, spelling in metrics:
            with at_key(key):
                Metric.of(spelling)
        for system in experiment.systems:
            if system.tuning is not None and names_code(system.spelling):
                with at_key(f"systems.{system.name}"):
                    system.tuning.check(str(system.spelling))
        yield
