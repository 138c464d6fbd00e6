"""The verb `replicate`: repeat a paper's study on any ratings, and compare it with the printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from cranfield import _checks
from cranfield._errors import SettingError, nearest
from cranfield._record import Step
from cranfield.assessments import rounded_to, sizes_of
from cranfield.data import Ratings, describe
from cranfield.judgments import NegativeGrades, notes_on_negative_grades
from cranfield.rankings import file_name
from cranfield.recommenders import recommender
from cranfield.reports import check_libraries
from cranfield.splits import Split, k_fold, per_user, predefined, random
from cranfield.store import open_store
from cranfield.studies._joining import StudyPart, joined
from cranfield.studies._study import SYSTEMS, PanelStudy, Study, StudyResults, data_names
from cranfield.studies._work import Asked, Work
from cranfield.studies._writing import write
from cranfield.studies.aftab2022 import AFTAB_2022
from cranfield.studies.bellogin2017 import BELLOGIN_2017
from cranfield.studies.canamares2020 import CANAMARES_2020
from cranfield.studies.canamares_castells2018 import CANAMARES_CASTELLS_2018
from cranfield.studies.canamares_castells2020 import CANAMARES_CASTELLS_2020
from cranfield.studies.rendle2020 import RENDLE_2020
from cranfield.studies.replication import Replication
from cranfield.studies.valcarce2018 import VALCARCE_2018
from cranfield.studies.valcarce2020 import VALCARCE_2020

STUDIES: dict[str, Study | PanelStudy] = {
    study.name: study
    for study in (
        VALCARCE_2018,
        VALCARCE_2020,
        CANAMARES_2020,
        CANAMARES_CASTELLS_2018,
        CANAMARES_CASTELLS_2020,
        BELLOGIN_2017,
        AFTAB_2022,
        RENDLE_2020,
    )
}
"""The papers that can be replicated, by name."""

_TRAIN = 0.8
_SAMPLES = 50
_LIKED = 4.0
_DECIMALS = 12
_OF_METRICS = ("split", "folds", "systems", "samples", "sizes", "decimals", "jobs", "negative_grades")
"""The options that only studies of metrics take."""


def replicate(
    study: str,
    data: Ratings | Split | Sequence[Ratings | Split],
    *,
    out: str | Path,
    split: Ratings | Split | None = None,
    folds: int | None = None,
    systems: Sequence[str] | None = None,
    samples: int | None = None,
    sizes: str | Sequence[float] | None = None,
    seeds: int | None = None,
    curve_seeds: int | None = None,
    targets: int | None = None,
    all_systems: bool | None = None,
    play_counts: bool | None = None,
    threshold: float | None = None,
    decimals: int | None = None,
    figures: bool = True,
    seed: int = 0,
    jobs: int | None = None,
    negative_grades: NegativeGrades | None = None,
    known: Ratings | Sequence[Ratings | None] | None = None,
    repetitions: int | None = None,
    negatives: Any = None,
    epochs: int | None = None,
) -> Replication:
    """Repeat a paper's study on any ratings: every table and figure, next to the printed numbers, and its claims.

    Parameters
    ----------
    study
        ``valcarce2018``, ``valcarce2020``, ``canamares2020``, ``canamares-castells2018``, ``canamares-castells2020``,
        ``bellogin2017``, ``aftab2022`` or ``rendle2020``.
    data
        The ratings, or several sets of them. ``canamares2020``, ``bellogin2017`` and ``aftab2022`` draw one panel per
        set; the other studies run on each set in a separate folder, and their tables are joined. For
        ``bellogin2017`` one of them may be a split, which is used as it is.
    out
        The folder for tables, figures, the report and all intermediate results. Results that are already there and were
        made from the same inputs are reused, so an interrupted study continues where it stopped.
    split
        The test ratings, if the original split is known; the rest of the data is for training. Or a split.
    folds
        The number of folds. By default that of the paper (1 for ``valcarce2018``, else 5). One fold is a split into 80
        and 20 %.
    systems
        The systems, with parameters. By default the 21 of the papers. For ``canamares-castells2018``: those that are
        compared with the truth in addition to the paper's own; for ``aftab2022`` and ``rendle2020``: those that are run
        instead of the paper's models.
    samples
        The number of samples per size if ratings, items or users are missing at random. By default 50, and 20 for
        ``aftab2022``.
    sizes
        How much of the test set remains, as for `assess`. By default the sizes of the paper.
    seeds, curve_seeds
        For ``canamares2020``: the number of random splits for the starting point (10 by default), and how many of these
        are used for the curves over split ratios, neighbours and overlaps (3). For ``canamares-castells2018``,
        ``seeds`` is how often the folds are drawn (10) and how many truths are drawn (5); for ``aftab2022`` the number
        of random splits (3).
    targets
        For ``bellogin2017``: the size of the target sets of one-relevant designs (100).
    all_systems
        For ``canamares-castells2020``: whether to train also the 78 systems whose p-values its Figure 4 adds up.
        They take about ten times as long as the eight systems of the other figures.
    play_counts
        For ``bellogin2017``: whether the ratings are play counts. Those below the threshold are then dropped, and
        `cranfield.counts_to_ratings` turns the others into positive ratings from 1 to 5. None: only if the ratings are
        recognised as play counts by their numbers of users, items and ratings (HetRec 2011 Last.fm).
    threshold
        The lowest rating of a relevant item. By default 4; for ``canamares-castells2018`` 3 if no rating exceeds 4; for
        ``bellogin2017`` 5, and 3 plays on HetRec 2011 Last.fm; for ``aftab2022`` the threshold that ``auto`` chooses
        for each set of ratings: 4 of 5, 8 of 10.
    decimals
        The number of decimals to which averages are rounded before systems are ordered (12 by default). The authors'
        tool printed 4.
    figures
        Whether to draw the figures; their numbers are always written.
    seed
        Fixes every random choice.
    jobs
        The number of systems to train in parallel, as for `recommend`; the result is the same for any number.
    negative_grades
        What test grades below 0 mean, as for `measure`: ``judged`` (the default), ``unjudged`` or ``pooled``.
    known
        For ``canamares-castells2018``: the ratings that a service would have observed. They may be part of ``data``, as
        in CM100k, or ratings of other pairs, such as the training part of Coat; see `cranfield.datasets.load_pair`.
        With several sets of ratings, give one for each.
    repetitions
        How often to run the study, with the seeds ``seed``, ``seed + 1`` and so on: other splits, folds, draws and
        trainings. Each repetition has its own folder. Once by default.
    negatives
        For ``rendle2020``: a file or a frame with the test item of each user and the items that it is ranked among, in
        the columns ``user``, ``item`` and ``negatives`` (a list), or with one ``negative`` per row.
    epochs
        For ``rendle2020``: the number of epochs of MF and NeuMF, by default 256 and 20. For ``aftab2022``: the maximum
        number of epochs of the neural models, by default their own.

    Notes
    -----
    An option that a study does not have is an error: ``split``, ``systems``, ``samples``, ``sizes``, ``decimals``,
    ``jobs`` and ``negative_grades`` belong to the studies of metrics, ``valcarce2018`` and ``valcarce2020``; ``folds``
    to these, to ``canamares-castells2020`` and to ``bellogin2017``; ``systems`` to these, to
    ``canamares-castells2018``, to ``aftab2022`` and to ``rendle2020``; ``samples`` to these and to ``aftab2022``.

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
    options = {
        "split": split, "folds": folds, "systems": systems, "samples": samples, "sizes": sizes, "decimals": decimals,
        "jobs": jobs, "negative_grades": negative_grades, "seeds": seeds, "curve_seeds": curve_seeds, "known": known,
        "targets": targets, "play_counts": play_counts, "all_systems": all_systems,
        "negatives": negatives, "epochs": epochs,
    }  # fmt: skip
    paper, several = _study(study), [data] if isinstance(data, Ratings | Split) else list(data)
    if repetitions is not None or (len(several) > 1 and not _takes_several(paper)):
        return _replicate_parts(paper, several, out, repetitions, {**options, "threshold": threshold}, figures, seed)
    if known is not None and not isinstance(known, Ratings):
        options["known"] = known = _known_of(known, 1)[0]
    _check_options(paper, several, {name: value for name, value in options.items() if value is not None})
    if figures:
        check_libraries()
    lowest: float | None = None
    if threshold is not None or not (isinstance(paper, PanelStudy) and paper.by_ratings):
        lowest = max(
            _threshold(ratings, _usual_threshold(paper, ratings) if threshold is None else threshold)
            for ratings in map(_training, several)
        )
    seed = _checks.whole("seed", seed, at_least=0)
    if isinstance(paper, PanelStudy):
        own = {name: options[name] for name in paper.options}
        return _replicate_panels(paper, several, out, own, lowest, figures, seed)
    assert lowest is not None
    ratings = _training(several[0])
    request = Asked(
        systems=_systems(SYSTEMS if systems is None else systems),
        metrics=paper.metrics,
        averages=paper.averages,
        sizes=_sizes(paper, sizes),
        samples=_checks.whole("samples", _SAMPLES if samples is None else samples),
        threshold=lowest,
        decimals=rounded_to(_DECIMALS if decimals is None else decimals),
        seed=seed,
        negative_grades=_negative_grades(negative_grades or "judged"),
    )
    if jobs is not None:
        _checks.whole("jobs", jobs)
    return _replicate_metrics(
        paper, ratings, out, request, split, _splits(paper, ratings, split, folds, seed), figures, jobs
    )


def _replicate_parts(
    paper: Study | PanelStudy,
    data: Sequence[Ratings | Split],
    out: str | Path,
    repetitions: int | None,
    options: Mapping[str, Any],
    figures: bool,
    seed: int,
) -> Replication:
    """Run a study once per set of ratings, if it cannot take several together, and per repetition."""
    times = 1 if repetitions is None else _checks.whole("repetitions", repetitions)
    names = data_names(data)
    together = {", ".join(names): list(data)}
    groups = together if _takes_several(paper) else {name: [ratings] for name, ratings in names.items()}
    if len(groups) > 1 and options["split"] is not None:
        raise SettingError(f"a split belongs to one set of ratings, but {len(groups)} are given; run the study on each")
    known = _known_of(options["known"], len(groups))
    _check_options(paper, data[:1], {name: value for name, value in options.items() if value is not None})
    parts = []
    with open_store(out) as store:
        store.begin(paper.name, f"{paper.name}: {len(groups)} parts, {times} repetitions")
        for place, (name, group) in enumerate(groups.items()):
            home = store.path / f"panel-{place + 1}" if len(groups) > 1 else store.path
            for repetition in range(times):
                part = replicate(
                    paper.name,
                    group,
                    out=home / f"repetition-{repetition + 1}" if times > 1 else home / "study",
                    figures=figures,
                    seed=_checks.whole("seed", seed, at_least=0) + repetition,
                    **{**options, "known": known[place]},
                )
                parts.append(StudyPart(name, repetition + 1, part))
        replication = joined(parts, store.path, {"repetitions": times, "seed": seed})
        with store.writing():
            write(replication, {}, figures)
    return replication


def _takes_several(paper: Study | PanelStudy) -> bool:
    return isinstance(paper, PanelStudy) and paper.several


def _known_of(known: Ratings | Sequence[Ratings | None] | None, count: int) -> list[Ratings | None]:
    """Return the observed ratings of each set of ratings."""
    several: list[Ratings | None] = [None] * count
    if known is not None:
        several = [known] if isinstance(known, Ratings) else list(known)
    if len(several) != count:
        raise SettingError(f"{count} sets of ratings need as many sets of known ratings, but {len(several)} are given")
    return several


def _replicate_metrics(
    paper: Study,
    data: Ratings,
    out: str | Path,
    request: Asked,
    split: Ratings | Split | None,
    splits: Sequence[Split],
    figures: bool,
    jobs: int | None,
) -> Replication:
    """Run a study of metrics."""
    with open_store(out) as store:
        store.begin(paper.name, f"{paper.name}: {request}")
        assessment, judged = Work(store, splits, request, jobs).done()
        results = StudyResults(describe(data), assessment, judged)
        replication = Replication(
            paper.name,
            paper.reference,
            tuple(paper.exhibits(results)),
            tuple(paper.claims(results)),
            assessment,
            store.path,
            _step(paper.name, data, split, assessment.step),
        )
        with store.writing():
            write(replication, {"split": splits[0].step}, figures)
    return replication


def _replicate_panels(
    paper: PanelStudy,
    data: Sequence[Ratings | Split],
    out: str | Path,
    options: Mapping[str, Any],
    threshold: float | None,
    figures: bool,
    seed: int,
) -> Replication:
    """Run a study of a protocol."""
    with open_store(out) as store:
        store.begin(paper.name, f"{paper.name}: {options}, threshold={threshold}, seed={seed}")
        results = paper.work(store, data, threshold=threshold, seed=seed, **options)
        names = ", ".join(_training(ratings).name or "the ratings" for ratings in data)
        settings = {"study": paper.name, "data": names, **results.settings}
        parts = [part for ratings in data for part in (ratings if isinstance(ratings, Split) else [ratings])]
        fingerprints = {"fingerprint": ", ".join(part.fingerprint for part in parts)}
        replication = Replication(
            paper.name,
            paper.reference,
            tuple(results.exhibits),
            tuple(results.claims),
            None,
            store.path,
            Step("replicate", settings, fingerprints),
            paper.rule,
        )
        with store.writing():
            write(replication, {}, figures)
    return replication


def _training(data: Ratings | Split) -> Ratings:
    """Return ratings, or the training part of a split."""
    return data.train if isinstance(data, Split) else data


def _check_options(paper: Study | PanelStudy, data: Sequence[Ratings | Split], given: Mapping[str, Any]) -> None:
    """Reject options that a study does not take, and data that are not ratings."""
    taken = paper.options if isinstance(paper, PanelStudy) else _OF_METRICS
    for name in given:
        if name not in (*taken, "threshold"):
            raise SettingError(f"{paper.name} takes no {name}; leave it out (it takes {', '.join(taken)})")
    if "epochs" in given:
        _checks.whole("epochs", given["epochs"])
        if "systems" in given:
            raise SettingError("give epochs or systems, not both; systems set their epochs, as in neumf(epochs=5)")
    kinds = Ratings | Split if isinstance(paper, PanelStudy) and paper.divided else Ratings
    if not data or not all(isinstance(ratings, kinds) for ratings in data):
        raise SettingError("a study needs ratings; read files and frames with cf.read")


def _study(name: str) -> Study | PanelStudy:
    if name not in STUDIES:
        raise SettingError(f"there is no study {name!r}{nearest(str(name), STUDIES)}")
    return STUDIES[name]


def _systems(systems: Sequence[str]) -> tuple[str, ...]:
    names = tuple(file_name(systems))
    if len(names) < 2:
        raise SettingError("a study compares orders of systems; give at least two")
    for name in names:
        recommender(name)  # raises an error for a misspelled one before any training
    return names


def _sizes(paper: Study, sizes: str | Sequence[float] | None) -> dict[str, tuple[float, ...]]:
    """Return the remaining shares of the test set in each scenario: those of the paper, or the given ones."""
    if sizes is None:
        return {name: tuple(own) for name, own in paper.sizes.items()}
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


def _usual_threshold(paper: Study | PanelStudy, data: Ratings) -> float:
    """Return the lowest rating of a relevant item in a paper's study."""
    own = paper.threshold if isinstance(paper, PanelStudy) else None
    return _LIKED if own is None else own(data)


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
    """Return the splits of a study: the given one, those of the paper, or the given number of folds."""
    if split is not None:
        if folds not in (None, 1):
            raise SettingError(f"folds={folds} and a given split exclude each other; give one of them")
        return [split if isinstance(split, Split) else predefined(data, split, overlap="test")]
    count = paper.folds if folds is None else _checks.whole("folds", folds)
    if count > 1:
        return k_fold(data, k=count, per_user=paper.per_user, seed=seed)
    return [(per_user if paper.per_user else random)(data, train=_TRAIN, seed=seed)]
