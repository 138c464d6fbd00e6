"""The errors a user can cause: one line that says what is wrong, where, and what to do, and the page that helps.

Examples
--------
>>> import cranfield as cf
>>> issubclass(cf.errors.DownloadError, cf.CranfieldError)
True
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from cranfield._terminal import shown

_PAGES: Mapping[str, str] = {
    "data": "data",
    "datasets": "datasets",
    "data.filters": "splits",
    **dict.fromkeys(("tables.ranges", "tables.spark", "rankings.ranged", "measures.ranged", "measures.spark"), "scale"),
    "simulate": "simulate",
    "splits": "splits",
    "recommenders": "recommenders",
    "rankings": "ranking",
    **dict.fromkeys((f"rankings.{module}" for module in (
        "columns", "layouts", "lists", "qrels", "reading", "run", "sources", "text",
    )), "runs"),
    "judgments": "evaluate",
    "metrics": "metrics/README",
    **dict.fromkeys(("metrics.dialects", "metrics.tools"), "dialects"),
    "measures": "evaluate",
    "measures.other_tools": "dialects",
    **dict.fromkeys((f"measures.{module}" for module in ("segments", "segmenting")), "segments"),
    "across": "across",
    "comparisons": "compare",
    "comparisons.by_segment": "segments",
    "comparisons.gate": "gate",
    **dict.fromkeys((f"comparisons.{module}" for module in ("suggestions", "tipping")), "unjudged"),
    "biases": "bias",
    "assessments": "assess",
    "store": "experiment",
    "experiments": "experiment",
    "audits": "audit",
    "reports": "report",
    "studies": "replications",
    **{f"cli.{module}": module for module in ("assess", "audit", "bias", "compare", "data", "evaluate", "experiment")},
    "cli.compare.suggest_judgments_command": "unjudged",
    "cli.demo": "report",
    "cli.evaluate.dialects_command": "dialects",
    "cli.recommend": "ranking",
    "cli.recommend.calibrate_command": "metrics/error",
    "cli.replicate": "replications",
    "cli.split": "splits",
}  # fmt: skip
"""The page of each stage, and of each module or function whose page is another one."""


class CranfieldError(Exception):
    r"""An error that the user can fix; the command line exits with code 2.

    Its message is one line without control characters, even if it quotes a file, a name or a server. The command line
    adds the documentation page that helps, such as ``docs/splits.md``: see `page`.

    Examples
    --------
    >>> print(CranfieldError("the file \x1b[31mmine.csv\nis empty"))
    the file �[31mmine.csv is empty
    """

    command: Any = None
    """The command that failed, for the words of its options; None in Python."""

    def __str__(self) -> str:
        return shown(" ".join(line.strip() for line in super().__str__().splitlines()))

    @property
    def page(self) -> str | None:
        """The documentation page that helps, as a path from the root of the repository; None before it is raised."""
        return page_for(self)


class OwnCodeError(CranfieldError):
    """An error in the user's own code, with its file and line; the original error is its cause."""


class InputError(CranfieldError):
    """Data that cannot be used; the message says where.

    Parameters
    ----------
    problem
        What is wrong, as a clause: ``"'abc' is not a number"``.
    source, row, column
        Where: the file or a word for the frame, the row (the header, if there is one, is row 1), and the column.
    remedy
        What to do about it.

    Examples
    --------
    >>> print(InputError("'abc' is not a number", source="r.csv", row=3, column="rating", remedy="fix it"))
    r.csv, row 3, column 'rating': 'abc' is not a number; fix it
    """

    def __init__(
        self,
        problem: str,
        *,
        source: str | Path | None = None,
        row: int | None = None,
        column: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem, self.source, self.row, self.column, self.remedy = problem, source, row, column, remedy
        places = [] if source is None else [str(source)]
        places += [] if row is None else [f"row {row}"]
        places += [] if column is None else [f"column {column!r}"]
        text = f"{', '.join(places)}: {problem}" if places else problem
        super().__init__(f"{text}; {remedy}" if remedy else text)


class SettingError(CranfieldError, ValueError):
    """A parameter, option or name that is not one of those allowed, or that contradicts another.

    Examples
    --------
    >>> import cranfield as cf
    >>> cf.splits.random(cf.Ratings.of([1], [2]), train=2)
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: train=2 is not a share; give a number between 0 and 1, such as train=0.2
    """


class NothingLeftError(SettingError):
    """A filter that leaves no ratings in these data; it might leave some in others."""


class ImpossibleSplitError(CranfieldError, ValueError):
    """A split that is impossible with these ratings."""


class MissingExtraError(CranfieldError, ImportError):
    """A feature whose optional libraries are not installed.

    Examples
    --------
    >>> print(MissingExtraError("wrmf", library="implicit", extra="recommend"))
    wrmf needs implicit, which is not installed; get it with: pip install 'cranfield[recommend]'
    """

    def __init__(self, feature: str, *, library: str, extra: str) -> None:
        self.library, self.extra = library, extra
        absent = "are not installed; get them" if " and " in library else "is not installed; get it"
        super().__init__(f"{feature} needs {library}, which {absent} with: pip install 'cranfield[{extra}]'")


class DownloadError(CranfieldError):
    """A dataset that could not be downloaded completely."""


class CranfieldWarning(UserWarning):
    """Something the user should know about their data; the result is still defined.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("error", CranfieldWarning)  # stop at likely mistakes
    >>> warnings.simplefilter("default", CranfieldWarning)
    """


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name most like ``name``, or a list of all of them.

    It is the end of a message: anything else goes before it.
    """
    known = list(known)
    return suggestion(name, known) or "; known: " + ", ".join(sorted(known, key=str.lower))


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'x'?"`` for the known name most like ``name``, or nothing if none is like it."""
    by_lower = {word.lower(): word for word in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.5)
    # Swapped letters are the likeliest typo: nDGC means nDCG rather than NDCL.
    close.sort(key=lambda word: sorted(word) != sorted(name.lower()))
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def page_for(error: BaseException) -> str | None:
    """Return the page that helps with an error, as a path from the root of the repository; None if there is none.

    It is the page of the innermost stage that the error was raised through. Tables are read by several stages, and an
    error there has the page of the stage that reads them. An error raised from another one, to say
    where it came from, has the page of that other one.
    """
    cause = error.__cause__
    if isinstance(cause, type(error)) and (page := page_for(cause)) is not None:
        return page
    for place in reversed(list(_places(error.__traceback__))):
        while place:
            if place in _PAGES:
                return f"docs/{_PAGES[place]}.md"
            place = place.rpartition(".")[0]
    return None


def _places(traceback: TracebackType | None) -> Iterator[str]:
    """Yield the functions of the package that an error was raised through, outermost first, as ``module.function``."""
    while traceback is not None:
        frame = traceback.tb_frame
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("cranfield."):
            yield f"{name.removeprefix('cranfield.')}.{frame.f_code.co_name}"
        traceback = traceback.tb_next
