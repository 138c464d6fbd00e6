"""What an audit would do, and about how long it would take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cranfield._numbers import count_text
from cranfield.audits.asking import menu_of
from cranfield.audits.auditing import with_audit
from cranfield.audits.crossing import Crossing, cross
from cranfield.audits.notes import notes_on
from cranfield.audits.stage import AUDITED
from cranfield.audits.wording import left_out_text
from cranfield.experiments import Experiment, Plan, about, experiment_and_folder, plan

_STEPS = {"models": "trainings", "runs": "rankings", "judged": "judged"}


@dataclass(frozen=True, eq=False)
class AuditPlan:
    """What an audit would do.

    Parameters
    ----------
    crossing
        The cells and universes.
    plan
        What would be made, including every set-up.
    """

    crossing: Crossing
    plan: Plan

    @property
    def to_make(self) -> dict[str, int]:
        """The numbers of trainings, rankings and sets of judged lists that are still to be made."""
        counts = Counter(task.stage for task in self.plan.tasks if task.state != "kept")
        return {name: counts[stage] for stage, name in _STEPS.items()}

    @property
    def estimate(self) -> str:
        """The amount of work and about how long it takes, in one line."""
        counts, setups = self.to_make, count_text(len(self.crossing.setups), "set-up")
        return (
            f"{len(self.crossing.universes):,} universes in {setups}; to make: "
            f"{counts['trainings']:,} trainings, {counts['rankings']:,} rankings; roughly {about(self.plan.seconds)}"
        )

    def __str__(self) -> str:
        crossing = self.crossing
        lines = [
            f"{opening.name:<16} {opening.kind:<11} {', '.join(opening.opened.options)}"
            for opening in crossing.menu.openings
        ]
        lines += ["", f"{'cells':<16} {len(crossing.cells):,}", f"{'universes':<16} {len(crossing.universes):,}"]
        kept = Counter(task.stage for task in self.plan.tasks if task.state == "kept")
        if crossing.menu.testings:
            lines.append(f"{'tests':<16} {', '.join(map(str, crossing.menu.testings))}")
        for stage, name in _STEPS.items():
            lines.append(f"{name:<16} {self.to_make[name]:,} to make, {kept[stage]:,} kept")
        invalid = [left_out_text([reason for _, reason in crossing.invalid])] if crossing.invalid else []
        return "\n".join([*lines, *notes_on(crossing), *invalid, f"roughly {about(self.plan.seconds)}"])


def plan_audit(
    experiment: Experiment | str | Path,
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    vary: Mapping[str, Any] | None = None,
    budget: int | None = None,
    truth: Mapping[str, float] | str | None = None,
    seed: int | None = None,
) -> AuditPlan:
    """Plan an audit: the numbers of trainings, rankings and universes, and about how long; nothing is written.

    The trainings and rankings of the starting point are counted too.
    """
    experiment, out = experiment_and_folder(experiment, out, seed)
    experiment = with_audit(experiment, preset=preset, vary=vary, budget=budget, truth=truth)
    crossing = cross(menu_of(experiment))
    return AuditPlan(crossing, plan(experiment, out, further=(AUDITED,)))
