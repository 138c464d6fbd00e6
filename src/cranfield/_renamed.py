"""Packages and functions of `cranfield` that have other names now: each is answered with the new one."""

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
    """Comes after all others, so that it only sees what nobody finds."""

    def find_spec(self, fullname: str, *_: Any) -> None:
        package, _dot, name = fullname.partition(".")
        if package == "cranfield" and name in PACKAGES:
            raise ModuleNotFoundError(f"cranfield.{name} is now cranfield.{PACKAGES[name]}", name=fullname)


def answer_imports() -> None:
    """Answer the import of a package that has another name now."""
    sys.meta_path.append(_Renamed())


def missing(name: str) -> AttributeError:
    """Return the answer to a name that `cranfield` does not have, or no longer has."""
    new_name = {**PACKAGES, **FUNCTIONS}.get(name)
    instead = "" if new_name is None else f"; it is now cranfield.{new_name}"
    return AttributeError(f"module 'cranfield' has no attribute {name!r}{instead}", name=name)
