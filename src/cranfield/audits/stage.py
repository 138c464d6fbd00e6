"""The optional stage `audit`: whether the winner remains the same under other decisions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.audits.answers import Audit
from cranfield.audits.asking import menu_of
from cranfield.audits.assessing import advice_rows, designs_of
from cranfield.audits.children import Children
from cranfield.audits.computing import audit_crossing
from cranfield.audits.crossing import check_options
from cranfield.audits.files import read_audit
from cranfield.audits.notes import notes_on
from cranfield.audits.true_values import check_truth, true_values, truth_made_of
from cranfield.experiments import (
    ASSESS,
    OUT,
    Experiment,
    Pipeline,
    Size,
    Stage,
    Stages,
    Unit,
    catalogue_digest,
    options_of,
    own_metrics,
)
from cranfield.store import Made

HOME = "audit"
"""The folder of an audit within that of its experiment."""

# Seconds to measure a list and average the values of a user in a universe.
_COMPUTED = 1e-6
# Seconds for a further test of a pair of systems in a universe.
_TESTED = 3e-3


class Audited(Stage[Audit]):
    """The audit of an experiment: all set-ups in its store, and the answers."""

    name, title, level, inputs = "audit", "Auditing", "experiment", ("data",)
    exported = True

    def check_experiment(self, experiment: Experiment) -> None:
        """Raise an error for decisions that cannot be opened."""
        if experiment.audit is not None:
            menu = menu_of(experiment)
            check_options(menu)
            if menu.truth is not None:
                check_truth(menu.truth, experiment)

    def wants(self, line: Pipeline, unit: Unit) -> bool:  # noqa: ARG002
        """Whether the experiment opens decisions."""
        return line.experiment.audit is not None

    def prepare(self, line: Pipeline, stages: Stages) -> None:
        """Train, rank and judge what does not exist yet for every set-up."""
        children = children_of(line)
        # This bar has its own clock, because its steps do not take as long as those of pairs of systems.
        with stages("Lists for the audit", len(children.lines)) as advance:
            children.go(advance)

    def inner(self, line: Pipeline) -> Iterator[tuple[Pipeline, Stage[Any], Unit]]:
        """Yield the artifacts of the set-ups."""
        yield from children_of(line).artifacts()

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        """Return the opened decisions, and the digests of the judged lists of every set-up."""
        children = children_of(line)
        menu = children.crossing.menu
        opened = [
            [opening.name, opening.kind, list(opening.opened.options), opening.weights, dict(opening.invalid)]
            for opening in menu.openings
        ]
        metrics = sorted({universe.measurement.metric for universe in children.crossing.universes})
        return {
            "opened": opened,
            "budget": menu.budget,
            "tests": [str(testing) for testing in menu.testings],
            "truth": truth_made_of(menu.truth, menu.experiment),
            "start": menu.experiment.decisions.as_dict(),
            "systems": [system.name for system in menu.experiment.systems],
            "judged": children.digests(),
            "catalogue": catalogue_digest(line.experiment),
            "own": own_metrics(metrics, line.experiment),
            "assess": None if line.experiment.assess is None else options_of(line.experiment),
            "seed": menu.experiment.seed,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        """Compute every universe, and write the audit."""
        children = children_of(line)
        menu = children.crossing.menu
        systems = tuple(system.name for system in line.experiment.systems)
        audit = audit_crossing(
            children.crossing,
            systems,
            children.lists,
            alpha=line.decisions.alpha,
            seed=line.experiment.seed,
            notes=notes_on(children.crossing),
            testings=menu.testings,
            truth=None if menu.truth is None else true_values(menu.truth, menu),
        )
        if line.experiment.assess is not None:
            audit = replace(audit, advised=tuple(advice_rows(children, line.experiment)))
        return audit.save(place / OUT / HOME), {}

    def read(self, line: Pipeline, unit: Unit) -> Audit:
        """Return the audit."""
        return read_audit(line.artifact(self, unit).path(f"{OUT}/{HOME}/audit.json").parent)

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        """Return about how long the universes take, once all lists are judged."""
        crossing = children_of(line).crossing
        systems = len(line.experiment.systems)
        tests = len({testing.significance for testing in crossing.menu.testings})
        tested = _TESTED * tests * len(crossing.universes) * systems * (systems - 1) / 2
        assessed = 0.0
        if line.experiment.assess is not None:
            assessed = len(designs_of(crossing)) * ASSESS.seconds(line, line.units("source")[0], size)
        return tested + assessed + _COMPUTED * len(crossing.universes) * size.users * systems


def children_of(line: Pipeline) -> Children:
    """Return the experiments of all set-ups; the same object for each call within a run."""
    return line.remember("audit children", line.experiment.title, lambda: Children(line))


AUDITED = Audited()
