"""Packages and functions of `cranfield` that were renamed: an error message gives the new name."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

PACKAGES = {
    "split": "splits",
    "recommend": "recommenders",
    "rank": "rankings",
    "measure": "measures",
    "compare": "comparisons",
    "assess": "assessments",
    "experiment": "experiments",
    "report": "reports",
}

FUNCTIONS = {"dialects": "across_tools"}


class _Renamed(MetaPathFinder):
    """The last finder, so that it only sees modules that no other finder knows."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        package, _dot, name = fullname.partition(".")
        if package == "cranfield" and name in PACKAGES:
            raise ModuleNotFoundError(f"cranfield.{name} is now cranfield.{PACKAGES[name]}", name=fullname)


def answer_imports() -> None:
    """Give the new name in the error when a renamed package is imported."""
    sys.meta_path.append(_Renamed())


def missing(name: str) -> AttributeError:
    """Return the error for a name that `cranfield` does not have, or no longer has."""
    new_name = {**PACKAGES, **FUNCTIONS}.get(name)
    instead = "" if new_name is None else f"; it is now cranfield.{new_name}"
    return AttributeError(f"module 'cranfield' has no attribute {name!r}{instead}", name=name)
