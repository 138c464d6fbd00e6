"""True values of systems: given in a table or a file, or computed from ratings of random items or in a world."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from cranfield._errors import InputError, SettingError, nearest
from cranfield._files import meant
from cranfield._registry import parse
from cranfield.audits.asking import Menu, Opening, text_of
from cranfield.audits.grid import Grid
from cranfield.audits.leads import Floats
from cranfield.audits.options import SYSTEMS, split_parameter, with_parameter
from cranfield.data import Ratings
from cranfield.experiments import SIMULATIONS, Experiment, Source, filtered, input_checksum
from cranfield.measures import true_values as estimated
from cranfield.rankings import Ranking, Run, rank_under
from cranfield.recommenders import recommender
from cranfield.simulate import METRICS, World, parse_metric
from cranfield.splits import truths


@dataclass(frozen=True, eq=False)
class KnownValues:
    """The true value of every system, where larger is better.

    Parameters
    ----------
    source
        What the values are, in words.
    by
        The opened decisions that they depend on: the data, and the parameters of systems.
    table
        By the options of these decisions, the values of all systems.
    """

    source: str
    by: tuple[str, ...]
    table: Mapping[tuple[str, ...], tuple[float, ...]]

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


def true_values(truth: Any, menu: Menu) -> KnownValues:
    """Return the true values of the systems of an audit.

    Parameters
    ----------
    truth
        True values by system; a file with the columns ``system`` and ``value``; or ``P@n``, ``Recall@n`` or ``nDCG@n``
        for simulated worlds, and ``P@n`` for a dataset with ratings of random items. Each system is then trained on all
        observed ratings, with the filters of the starting point, and ranks the items that the user has not rated, as in
        production. The value is the mean over all users of the metric with every item judged; with ratings of random
        items it is estimated (`cranfield.measures.true_values`).
    menu
        The opened decisions: values depend on the parameters of systems and on the data.
    """
    metric = _world_metric(truth)
    if metric is not None:
        return _of_data(metric, menu)
    names = [system.name for system in menu.experiment.systems]
    values = stated_values(truth, names, menu.experiment.path)
    parameters = _parameters(menu)
    own = tuple(opening.opened.options[opening.start] for opening in parameters)
    called = f"the values in {Path(truth).name}" if isinstance(truth, str) else "the given values"
    return KnownValues(called, tuple(opening.name for opening in parameters), {own: values})


def _parameters(menu: Menu) -> list[Opening]:
    """Return the opened parameters of systems."""
    return [opening for opening in menu.openings if opening.name.startswith(SYSTEMS)]


def _of_data(metric: str, menu: Menu) -> KnownValues:
    """Return the true values on all data whose truth is known, for all options of parameters."""
    experiment, parameters = menu.experiment, _parameters(menu)
    several = [opening.name for opening in menu.openings if opening.name == "data"]
    table: dict[tuple[str, ...], tuple[float, ...]] = {}
    for source in experiment.data if several else experiment.data[:1]:
        if not (_is_world(source) or _has_judgments(source)):
            continue
        value_of = (_by_world if _is_world(source) else _by_judgments)(experiment, source, metric)
        for options in product(*(opening.values for opening in parameters)):
            key = (*([source.name] if several else []), *map(text_of, options))
            spelled = _spelled(experiment, parameters, options)
            table[key] = tuple(map(value_of, spelled))
    by = (*several, *(opening.name for opening in parameters))
    worlds = all(map(_is_world, experiment.data if several else experiment.data[:1]))
    return KnownValues(f"{metric} {'on all true preferences' if worlds else 'by ratings of random items'}", by, table)


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


def _spelled(experiment: Experiment, parameters: Sequence[Opening], options: Sequence[Any]) -> list[str]:
    """Return the spelling of each system with some options of its parameters."""
    spelled = {system.name: str(system.spelling) for system in experiment.systems}
    for opening, value in zip(parameters, options):
        system, parameter = split_parameter(opening.name)
        spelled[system] = with_parameter(spelled[system], parameter, value)
    return list(spelled.values())


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
    """Return a function that estimates the true precision of a system by ratings of random items.

    If the observed ratings are among these (CM100k), a random half of them is the truth, and systems are trained on the
    observed ratings in the other half.
    """
    from cranfield.datasets import load_pair

    observed, judged = load_pair(str(source.dataset))
    pairs = [own.users.astype(np.int64) * own.n_items + own.items for own in (observed, judged)]
    probability = None
    if np.isin(pairs[0], pairs[1]).any():
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
