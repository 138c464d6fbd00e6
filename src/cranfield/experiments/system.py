"""`System`: what an experiment compares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, get_args

from cranfield._checks import one_of
from cranfield._errors import SettingError
from cranfield._own_code import check_form, names_code
from cranfield._registry import parse
from cranfield.experiments.tuning import Tuning
from cranfield.rankings import Gaps, Ties
from cranfield.recommenders import recommender

# Names become file and folder names.
_NAME = re.compile(r"[\w(][\w.()=,+-]*( [\w.()=,+-]+)*")

LIST_READING = {"ties": get_args(Ties), "gaps": get_args(Gaps)}
"""Options for reading a file of ranked lists, and their values."""


@dataclass(frozen=True)
class System:
    """A system to compare: a spelled recommender, or a file of ranked lists.

    Parameters
    ----------
    name
        Its name in tables.
    spelling
        The recommender, with its parameters.
    run
        The file; ``{data}`` in its name stands for the name of the data.
    ties, gaps
        How items of equal score are ordered, and what ranks mean that leave places out, as for `read_run`; None for its
        default.
    tuning
        Hyper-parameters to search on a validation part; None for no search.
    """

    name: str
    spelling: str | None = None
    run: str | None = None
    tuning: Tuning | None = None
    ties: Ties | None = None
    gaps: Gaps | None = None

    def __post_init__(self) -> None:
        check_name("systems", self.name)
        for key in ("spelling", "run"):
            if getattr(self, key) is not None and not isinstance(getattr(self, key), str):
                raise SettingError(f"systems.{self.name}={getattr(self, key)!r} is not text; write it in quotes")
        if (self.spelling is None) == (self.run is None):
            raise SettingError(f"systems.{self.name} needs a recommender, or run = 'file' for ranked lists")
        if self.spelling is not None:
            try:
                check_form(self.spelling) if names_code(self.spelling) else recommender(self.spelling)
            except SettingError as error:
                raise SettingError(f"systems.{self.name}: {error}") from None
            object.__setattr__(self, "spelling", str(parse(self.spelling)))
        for key, value in self.reading.items():
            if self.run is None:
                raise SettingError(f"systems.{self.name}: {key} is for ranked lists, run = 'file'; leave it out")
            one_of(f"systems.{self.name}.{key}", value, LIST_READING[key])
        if self.tuning is not None:
            if self.spelling is None:
                raise SettingError(f"systems.{self.name} is a file, so there is nothing to search; leave search out")
            try:
                self.tuning.check(self.spelling)
            except SettingError as error:
                raise SettingError(f"systems.{self.name}: {error}") from None

    @property
    def reading(self) -> dict[str, Any]:
        """How the file of ranked lists is read, where the experiment says so."""
        return {key: value for key in LIST_READING if (value := getattr(self, key)) is not None}

    def run_file(self, data: str) -> str | None:
        """Return the file of ranked lists for a set of ratings."""
        return None if self.run is None else self.run.replace("{data}", data)


def check_name(kind: str, name: object) -> None:
    """Reject a name that is not a valid file or folder name."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name.encode()) > 200:
        raise SettingError(f"{kind} has the name {name!r}; use letters, digits, spaces and _ . , ( ) = + -")
