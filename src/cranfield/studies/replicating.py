"""The verb `replicate`: a paper's study on any ratings, next to what the paper printed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._spelling import nearest
from cranfield.assessments.robustness import rounded_to
from cranfield.assessments.scenarios import sizes_of
from cranfield.data import Ratings, describe
from cranfield.experiments.store import open_store
from cranfield.measures.judgments import NegativeGrades
from cranfield.measures.notes import notes_on_negative_grades
from cranfield.rankings import file_name
from cranfield.recommenders import recommender
from cranfield.reports.figures import check_libraries
from cranfield.splits import Split, k_fold, per_user, predefined, random
from cranfield.studies._study import SYSTEMS, Study, StudyResults
from cranfield.studies._work import Asked, Work
from cranfield.studies._writing import write
from cranfield.studies.replication import Replication
from cranfield.studies.valcarce2018 import VALCARCE_2018
from cranfield.studies.valcarce2020 import VALCARCE_2020

STUDIES = {study.name: study for study in (VALCARCE_2018, VALCARCE_2020)}
"""The papers that can be run again, by name."""

_TRAIN = 0.8


def replicate(
    study: str,
    data: Ratings,
    *,
    out: str | Path,
    split: Ratings | Split | None = None,
    folds: int | None = None,
    systems: Sequence[str] = SYSTEMS,
    samples: int = 50,
    sizes: str | Sequence[float] | None = None,
    threshold: float = 4.0,
    decimals: int = 12,
    figures: bool = True,
    seed: int = 0,
    jobs: int | None = None,
    negative_grades: NegativeGrades = "judged",
) -> Replication:
    """Run a paper's study on any ratings: every table and figure, next to what is printed, and its claims.

    Parameters
    ----------
    study
        ``valcarce2018`` or ``valcarce2020``.
    data
        The ratings.
    out
        The folder for tables, figures, the report and everything that was made on the way. What is there already and
        was made of the same is taken again, so an interrupted study goes on where it stopped.
    split
        The test ratings, where the very split is known; the rest of the data is for training. Or a split.
    folds
        How many folds: the paper's unless given (1 for 2018, 5 for 2020). One is a split of 80 and 20 %.
    systems
        The systems, with parameters: the 21 of the papers unless given.
    samples
        How many samples a size has where ratings, items or users are missing at random.
    sizes
        What remains of the test set, as for `assess`; the paper's unless given.
    threshold
        The lowest rating of a relevant item.
    decimals
        Averages are rounded to so many decimals before systems are ordered: 4 is what the authors' tool printed.
    figures
        Whether to draw the figures; their numbers are written in any case.
    seed
        Fixes every random choice.
    jobs
        How many systems are trained at a time, as for `recommend`; the result is the same for any number.
    negative_grades
        What test grades below 0 mean, as for `measure`: ``judged``, ``unjudged`` or ``pooled``.

    Examples
    --------
    >>> import tempfile
    >>> import cranfield as cf
    >>> data = cf.simulate.world(users=60, items=40, ratings=1_200, seed=1).ratings
    >>> found = replicate("valcarce2020", data, out=tempfile.mkdtemp(), folds=2, samples=2, sizes=[1, 0.5],
    ...                   systems=["random", "popularity", "average"], figures=False)
    >>> found.frame()["verdict"].unique().to_list()
    ['cannot tell']
    """
    paper = _study(study)
    if figures:
        check_libraries()
    wanted = Asked(
        systems=_systems(systems),
        metrics=paper.metrics,
        averages=paper.averages,
        sizes=_sizes(paper, sizes),
        samples=_checks.whole("samples", samples),
        threshold=_threshold(data, threshold),
        decimals=rounded_to(decimals),
        seed=_checks.whole("seed", seed, at_least=0),
        negative_grades=_negative_grades(negative_grades),
    )
    if jobs is not None:
        _checks.whole("jobs", jobs)
    splits = _splits(paper, data, split, folds, seed)
    with open_store(out) as store:
        store.begin(study, f"{study}: {wanted}")
        assessment, judged = Work(store, splits, wanted, jobs).done()
        results = StudyResults(describe(data), assessment, judged)
        replication = Replication(
            study,
            paper.reference,
            tuple(paper.exhibits(results)),
            tuple(paper.claims(results)),
            assessment,
            store.path,
            _step(study, data, split, assessment.step),
        )
        with store.writing():
            write(replication, splits[0].step, figures)
    return replication


def _study(name: str) -> Study:
    if name not in STUDIES:
        raise SettingError(f"there is no study {name!r}{nearest(str(name), STUDIES)}")
    return STUDIES[name]


def _systems(systems: Sequence[str]) -> tuple[str, ...]:
    names = tuple(file_name(systems))
    if len(names) < 2:
        raise SettingError("a study compares orders of systems; give at least two")
    for name in names:
        recommender(name)  # A misspelled one is refused before the others are trained.
    return names


def _sizes(paper: Study, sizes: str | Sequence[float] | None) -> dict[str, tuple[float, ...]]:
    """Return what remains of the test set in each scenario of a paper: as in the paper, or as asked for."""
    if sizes is None:
        return {name: tuple(shares) for name, shares in paper.sizes.items()}
    grid = sizes_of(sizes)
    if grid == (1.0,):
        raise SettingError("sizes=[1] leaves the test set whole; give a share below 1 as well, such as sizes=[1, 0.5]")
    return dict.fromkeys(paper.sizes, grid)


def _threshold(data: Ratings, threshold: float) -> float:
    threshold = _checks.number("threshold", threshold)
    if len(data) and data.values.max() < threshold:
        raise SettingError(
            f"no rating reaches threshold={threshold:g}, the highest is {data.values.max():g}; choose a lower one"
        )
    return threshold


def _negative_grades(reading: NegativeGrades) -> NegativeGrades:
    _checks.one_of("negative_grades", reading, get_args(NegativeGrades))
    return reading


def _step(study: str, data: Ratings, split: Ratings | Split | None, assessed: Step) -> Step:
    settings = {"study": study, "data": data.name or "the ratings", **assessed.settings}
    grades = notes_on_negative_grades(split, settings["negative_grades"]) if isinstance(split, Ratings) else ()
    notes = tuple(dict.fromkeys((*grades, *assessed.notes)))
    return Step("replicate", settings, {"fingerprint": data.fingerprint}, notes)


def _splits(
    paper: Study, data: Ratings, split: Ratings | Split | None, folds: int | None, seed: int
) -> Sequence[Split]:
    """Return the splits of a study: the one that is given, the paper's, or as many folds as asked for."""
    if split is not None:
        if folds not in (None, 1):
            raise SettingError(f"folds={folds} and a given split exclude each other; give one of them")
        return [split if isinstance(split, Split) else predefined(data, split, overlap="test")]
    count = paper.folds if folds is None else _checks.whole("folds", folds)
    if count > 1:
        return k_fold(data, k=count, per_user=paper.per_user, seed=seed)
    return [(per_user if paper.per_user else random)(data, train=_TRAIN, seed=seed)]
