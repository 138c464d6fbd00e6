"""The record: what was done to the data, step by step, with its effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class Step:
    """One step in the history of a result.

    Parameters
    ----------
    action
        What was done, as a name: ``"read"``, ``"min_ratings"``, ``"split.random"``.
    settings
        The settings it was done with, JSON-ready.
    effect
        What it changed, JSON-ready: counts before and after, for instance.
    notes
        Sentences that a reader should see: leakage, users left out, a rule applied.
    """

    action: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    effect: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", MappingProxyType(dict(self.settings)))
        object.__setattr__(self, "effect", MappingProxyType(dict(self.effect)))

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        effect = ", ".join(f"{name} {value}" for name, value in self.effect.items())
        return f"{self.action}({settings})" + (f": {effect}" if effect else "")

    def as_dict(self) -> dict[str, Any]:
        """Return the step as plain dictionaries and lists, ready for JSON."""
        return {
            "action": self.action,
            "settings": dict(self.settings),
            "effect": dict(self.effect),
            "notes": list(self.notes),
        }
