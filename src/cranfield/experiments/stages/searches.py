"""The stage `searches`: chooses hyper-parameters on a validation part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cranfield._errors import SettingError
from cranfield._own_code import names_code, takes_parameter
from cranfield._registry import parse
from cranfield.experiments.costs import training_time
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.searching import search
from cranfield.experiments.stage import OUT, Size, Stage
from cranfield.experiments.stages.data import decided, features_of
from cranfield.experiments.stages.splits import SPLITS, split_of
from cranfield.experiments.tuning import Tuning
from cranfield.experiments.user_code import own_metrics, own_system
from cranfield.recommenders import recommender
from cranfield.store import Made
from cranfield.tables import write_table


class _Searches(Stage[None]):
    name, title, level, inputs = "searches", "Searching settings", "cell", ("splits",)
    exported = True

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        """Whether the system has something to search."""
        return unit.system.tuning is not None

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        tuning, decisions = _tuning(unit), decided(line, unit)
        # A search measures sampled lists, even if the experiment takes the expectation over draws.
        ranking = decisions.with_(draws="sampled").ranking
        metric = tuning.metric or decisions.metrics[0]
        return {
            "split": line.artifact(SPLITS, unit).digest,
            "fold": unit.fold,
            "system": unit.system.spelling,
            **features_of(line, unit, str(unit.system.spelling)),
            **tuning.as_dict(),
            "metric": metric,
            "own": [*own_metrics([metric], line.experiment), *own_system(str(unit.system.spelling), line.experiment)],
            "asked": {
                **decisions.serving.as_dict(),
                **ranking.as_dict(),
                "threshold": decisions.measuring.threshold,
            },
            "seed": line.seed(unit),
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        """Search on the validation part; the test part is not used."""
        split, made_of = split_of(line, unit), self.inputs_of(line, unit)
        validation = "the validation part" if split.validation is not None else "a fifth of the training part"
        try:
            tried = search(
                split,
                str(unit.system.spelling),
                _tuning(unit).space,
                made_of["metric"],
                trials=_tuning(unit).trials,
                record=line.store.unfinished(self.name_for(unit), made_of),
                seed=line.seed(unit),
                **made_of["asked"],
            )
        except SettingError as error:
            raise SettingError(f"systems.{unit.system.name}: searched on {validation}: {error}") from error
        facts = {
            "best": tried.final,
            "metric": tried.metric,
            "value": tried.best.value,
            "trials": len(tried.trials),
            "validation": validation,
        }
        path = place / OUT / f"{self.name_for(unit)}.parquet"
        return [write_table(tried.frame().drop("seconds"), path)], facts

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float | None:
        if names_code(unit.system.spelling):
            return None  # a plan does not run user code
        return training_time(line.decisions, str(unit.system.spelling), size) * _tuning(unit).size


def _tuning(unit: Unit) -> Tuning:
    assert unit.system.tuning is not None
    return unit.system.tuning


def spelling_of(line: Pipeline, unit: Unit) -> str:
    """Return the spelling of a recommender on a part, with the best parameters of its search, if it has one."""
    artifact = line.made(SEARCHES, unit)
    return str(unit.system.spelling if artifact is None else artifact.facts.get("best", unit.system.spelling))


def parameters_of(line: Pipeline, unit: Unit) -> dict[str, Any]:
    """Return all parameters of a recommender on a part, including defaults.

    For user code named by its module, these are the spelled parameters, and the seed if it takes one.
    """
    spelling, seed = spelling_of(line, unit), line.seed(unit)
    if names_code(spelling):
        seeded = {"seed": seed} if takes_parameter(spelling, "seed", line.experiment.base) else {}
        return {**seeded, **dict(parse(spelling).parameters)}
    return dict(vars(recommender(spelling, seed)))


SEARCHES = _Searches()
