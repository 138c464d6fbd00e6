"""`Study`: a paper that can be repeated, with its set-up, tables, figures and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import polars as pl

from cranfield._table import Table
from cranfield.assessments import Assessment
from cranfield.data import Description, Ratings
from cranfield.splits import Split
from cranfield.studies._claims import ClaimRule, Finding

SYSTEMS = (
    "random", "popularity", "chi2", "kld", "rsv", "rw", "rm1", "rm2", "lm-wsr-ub", "lm-wsr-ib", "nncosngbr-ub",
    "nncosngbr-ib", "slim", "ht", "svd", "puresvd", "bprmf", "wrmf", "lda", "plsa", "uir",
)  # fmt: skip
"""The 21 systems of Valcarce et al. (2018, 2020), as spelled in `cranfield.recommend`."""


Data = TypeVar("Data", bound=Ratings | Split)


def data_names(data: Sequence[Data]) -> dict[str, Data]:
    """Return sets of ratings by name, with numbers if names are missing or not unique."""
    names: dict[str, Data] = {}
    for place, ratings in enumerate(data, start=1):
        name = (ratings.train if isinstance(ratings, Split) else ratings).name or "the ratings"
        names[f"{name} ({place})" if name in names else name] = ratings
    return names


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a paper, reproduced from a run.

    Parameters
    ----------
    name
        Its file name without extension: ``table-3``, ``figure-06``.
    caption
        What it shows.
    frame
        Its numbers as a tidy frame.
    table
        The readable table, if it is one.
    draw
        A function that returns it as an Altair chart, if it is a figure.
    """

    name: str
    caption: str
    frame: pl.DataFrame
    table: Table | None = None
    draw: Callable[[], Any] | None = None

    @property
    def home(self) -> str:
        """The folder of its files."""
        return "tables" if self.draw is None else "figures"


@dataclass(frozen=True, eq=False)
class StudyResults:
    """The results of a study on a set of ratings, before they are arranged as in the paper.

    Parameters
    ----------
    data
        A description of the ratings.
    assessment
        Every metric under every average of the study, on all folds.
    judged
        The share of the recommended items that have a test rating, averaged over systems and folds.
    """

    data: Description
    assessment: Assessment
    judged: float


@dataclass(frozen=True)
class Study:
    """A paper whose study can be repeated.

    Parameters
    ----------
    name
        Its name on the command line.
    reference
        The paper.
    metrics
        What is measured, as spelled in this package.
    averages
        How it is averaged over users.
    sizes
        For each scenario, the shares of the test set that remain.
    folds
        Number of folds in the paper; 1 for a single split.
    per_user
        Whether each profile is split separately.
    exhibits, claims
        Functions that arrange the results as in the paper, and that check its claims.
    """

    name: str
    reference: str
    metrics: tuple[str, ...]
    averages: tuple[str, ...]
    sizes: Mapping[str, Sequence[float]]
    folds: int
    per_user: bool
    exhibits: Callable[[StudyResults], list[Exhibit]]
    claims: Callable[[StudyResults], list[Finding]]


@dataclass(frozen=True, eq=False)
class PanelResults:
    """The results of a study of a protocol: its tables and figures, its claims, and its settings."""

    exhibits: list[Exhibit]
    claims: list[Finding]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class PanelStudy:
    """A paper that varies the protocol of an evaluation and can be repeated, with one panel per set of ratings.

    Parameters
    ----------
    name
        Its name on the command line.
    reference
        The paper.
    options
        The options of `replicate` that it takes besides those that every study takes.
    several
        Whether it takes several sets of ratings.
    rule
        When its claims hold.
    work
        The function that trains, ranks and measures. It takes the store and the sets of ratings, and the keywords
        ``threshold``, ``seed`` and the options, which are None if not given.
    threshold
        A function that returns the lowest rating of a relevant item for a set of ratings, as in the paper; None: 4.
    by_ratings
        Whether the work itself chooses a threshold for each set of ratings unless one is given.
    divided
        Whether it accepts a split instead of ratings, for data that are already divided.
    """

    name: str
    reference: str
    options: tuple[str, ...]
    several: bool
    rule: ClaimRule
    work: Callable[..., PanelResults]
    threshold: Callable[[Ratings], float] | None = None
    by_ratings: bool = False
    divided: bool = False
