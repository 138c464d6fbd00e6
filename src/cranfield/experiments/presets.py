"""Presets: decisions of a paper, as a starting point for an experiment file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cranfield import _checks as check
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.experiment import Experiment
from cranfield.experiments.system import System


@dataclass(frozen=True)
class Preset:
    """An experiment to start from.

    Parameters
    ----------
    experiment
        What the file states.
    summary
        One-line description.
    head
        Comment at the top of the file.
    """

    experiment: Experiment
    summary: str
    head: str


_CANAMARES = Decisions(
    split="random(train=0.5)",
    min_ratings=1,
    metrics=("P@10", "nDCG(gain=binary)@10"),
    threshold=4,
    significance="student",
    correction="none",
)

PRESETS: Mapping[str, Preset] = {
    "canamares2020": Preset(
        Experiment(
            title="The starting configuration of Cañamares, Castells and Moffat (2020)",
            decisions=_CANAMARES,
            systems=(
                System("kNN", "knn(k=100)"),
                System("MF", "wrmf(factors=50, alpha=1, regularization=0.1, target=rating, binary=false)"),
            ),
        ),
        "the starting configuration of Cañamares, Castells and Moffat (2020)",
        "These are the decisions of the starting configuration of that paper (section 4): half of the ratings for\n"
        "# training, users without training ratings removed, binary gains from 4, Student's paired t-test.\n"
        "# The paper used MovieLens 1M: put your copy of it in place of the simulated world below.",
    ),
}
"""The presets by name."""


def preset(name: str) -> Preset:
    """Return a preset by its name; the error for an unknown name lists all presets.

    Examples
    --------
    >>> print(preset("canamares2020").experiment.decisions)  # doctest: +ELLIPSIS
    random 50/50, full lists, P@10 and nDCG@10 with binary gain, plain mean, users with a training rating, ...
    >>> preset("valcarce")
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: preset='valcarce' is not one of canamares2020
    """
    return PRESETS[check.one_of("preset", name, tuple(PRESETS))]
