"""Presets: decisions that an audit opens together, each with its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cranfield import _checks as check

Vary = Mapping[str, tuple[Any, ...]]
"""The options of each opened decision."""

CUTOFFS = (5, 10, 20, 50, 100)
THRESHOLDS = (3, 4, 5)
GEOMETRIC = "geometric(form=adjusted, epsilon=0.01)"

_MEASURING: Vary = {
    "metrics": ("P", "nDCG(gain=binary)", "nDCG(gain=exp)", "AP", "RR"),
    "cutoff": CUTOFFS,
    "threshold": THRESHOLDS,
    "average": ("mean", "weighted(by=judged)", GEOMETRIC),
    "coverage": ("full", "reduced"),
}

PRESETS: Mapping[str, Vary] = {
    # Decisions in which two careful papers may well differ.
    "usual": {
        "split": tuple(
            f"{method}(train={share})" for method in ("random", "per_user") for share in (0.5, 0.6, 0.7, 0.8, 0.9)
        ),
        **_MEASURING,
    },
    # The options of Cañamares, Castells and Moffat (2020), sections 3 and 4.
    "canamares2020": {
        "split": tuple(f"random(train={tenths / 10:g})" for tenths in range(1, 10)),
        "lists": ("full", "condensed"),
        "metrics": ("P", "nDCG(gain=binary)", "nDCG(gain=exp1full)", "RBP(p=0.8)", "RBP(p=0.8, gain=exp1full)"),
        "cutoff": (5, 10, 20, 50, 100),
        "average": ("mean", "weighted(by=judged)", "weighted(by=relevant)", GEOMETRIC),
        "coverage": ("full", "reduced"),
    },
    # Decisions that need no further training or ranking.
    "measuring": {**_MEASURING, "undefined": ("zero", "leave out")},
}
"""The presets by name: the options of every decision that each opens."""

USUAL = "usual"
"""The preset of an audit that names none and opens no decisions."""


def preset_options(name: Any) -> Vary:
    """Return the options of a preset; for an unknown name, the error suggests a similar one.

    Examples
    --------
    >>> preset_options("measuring")["cutoff"]
    (5, 10, 20, 50, 100)
    """
    return PRESETS[check.one_of("preset", name, PRESETS)]
