"""The verb `replicate`: repeat a paper's study on any ratings, and compare it with the printed numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cranfield import _checks
from cranfield._errors import SettingError, nearest
from cranfield._record import Step
from cranfield.data import Ratings
from cranfield.judgments import NegativeGrades
from cranfield.reports import check_libraries
from cranfield.splits import Split
from cranfield.store import open_store
from cranfield.studies.aftab2022 import AFTAB_2022
from cranfield.studies.bellogin2017 import BELLOGIN_2017
from cranfield.studies.canamares2020 import CANAMARES_2020
from cranfield.studies.canamares_castells2018 import CANAMARES_CASTELLS_2018
from cranfield.studies.canamares_castells2020 import CANAMARES_CASTELLS_2020
from cranfield.studies.frame.replication import Replication, StudyPart, joined, write
from cranfield.studies.frame.study import Study, StudyFiles, data_names
from cranfield.studies.rendle2020 import RENDLE_2020
from cranfield.studies.valcarce import VALCARCE_2018, VALCARCE_2020

_PAPERS = (
    VALCARCE_2018, VALCARCE_2020, CANAMARES_2020, CANAMARES_CASTELLS_2018, CANAMARES_CASTELLS_2020, BELLOGIN_2017,
    AFTAB_2022, RENDLE_2020,
)  # fmt: skip
STUDIES = {study.name: study for study in _PAPERS}
"""The papers that can be replicated, by name."""


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
        Systems, with parameters, instead of the 21 of the papers, or of the models of ``aftab2022`` and ``rendle2020``.
        For ``canamares-castells2018`` and ``canamares-castells2020`` they are added to the paper's own; for
        ``bellogin2017`` each replaces the system of the same kind, or is added.
    samples
        The number of samples per size if ratings, items or users are missing at random. By default 50, and 20 for
        ``aftab2022``.
    sizes
        How much of the test set remains, as for `assess`. By default the sizes of the paper.
    seeds, curve_seeds
        For ``canamares2020``: the number of random splits for the starting point (10 by default), and how many of these
        are used for the curves over split ratios, neighbours and overlaps (5). For ``canamares-castells2018``,
        ``seeds`` is how often the folds are drawn (10) and how many truths are drawn (5); for ``aftab2022`` the number
        of random splits (5).
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
    to these, to ``canamares-castells2020`` and to ``bellogin2017``; ``systems`` to all but ``canamares2020``, which
    compares two; ``samples`` to the studies of metrics and to ``aftab2022``.

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
    if study not in STUDIES:
        raise SettingError(f"there is no study {study!r}{nearest(str(study), STUDIES)}")
    paper, several = STUDIES[study], [data] if isinstance(data, Ratings | Split) else list(data)
    if repetitions is not None or (len(several) > 1 and not paper.several):
        return _replicate_parts(paper, several, out, repetitions, {**options, "threshold": threshold}, figures, seed)
    if known is not None and not isinstance(known, Ratings):
        options["known"] = _known_of(known, 1)[0]
    _check_options(paper, several, {**options, "threshold": threshold})
    if figures:
        check_libraries()
    lowest = [_threshold(paper, _training(ratings), threshold) for ratings in several]
    own = {name: options[name] for name in paper.options}
    if paper.takes_threshold:
        own["threshold"] = max((value for value in lowest if value is not None), default=None)
    own["seed"] = _checks.whole("seed", seed, at_least=0)
    work = paper.plan(several, **own)
    with open_store(out) as store:
        store.begin(paper.name, f"{paper.name}: {own}")
        files = StudyFiles(store)
        results = work(files)
        files.finish()
        names = ", ".join(_training(ratings).name or "the ratings" for ratings in several)
        parts = [part for ratings in several for part in (ratings if isinstance(ratings, Split) else [ratings])]
        settings = {"study": paper.name, "data": names, **results.settings}
        effect = {"fingerprint": ", ".join(part.fingerprint for part in parts)}
        step = Step("replicate", settings, effect, results.notes)
        reproduced = (tuple(results.exhibits), tuple(results.claims), results.assessment)
        replication = Replication(paper.name, paper.reference, *reproduced, store.path, step)
        with store.writing():
            write(replication, results.steps, figures)
    return replication


def _replicate_parts(
    paper: Study,
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
    groups = {", ".join(names): list(data)} if paper.several else {name: [own] for name, own in names.items()}
    if len(groups) > 1 and options["split"] is not None:
        raise SettingError(f"a split belongs to one set of ratings, but {len(groups)} are given; run the study on each")
    known = _known_of(options["known"], len(groups))
    _check_options(paper, data[:1], options)
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


def _known_of(known: Ratings | Sequence[Ratings | None] | None, count: int) -> list[Ratings | None]:
    """Return the observed ratings of each set of ratings."""
    several: list[Ratings | None] = [None] * count
    if known is not None:
        several = [known] if isinstance(known, Ratings) else list(known)
    if len(several) != count:
        raise SettingError(f"{count} sets of ratings need as many sets of known ratings, but {len(several)} are given")
    return several


def _training(data: Ratings | Split) -> Ratings:
    """Return ratings, or the training part of a split."""
    return data.train if isinstance(data, Split) else data


def _check_options(paper: Study, data: Sequence[Ratings | Split], options: Mapping[str, Any]) -> None:
    """Reject options that a study does not take, and data that are not ratings."""
    stated = {name: value for name, value in options.items() if value is not None}
    for name in stated:
        if name not in paper.options and not (name == "threshold" and paper.takes_threshold):
            raise SettingError(f"{paper.name} takes no {name}; leave it out (it takes {', '.join(paper.options)})")
    if "epochs" in stated:
        _checks.whole("epochs", stated["epochs"])
        if "systems" in stated:
            raise SettingError("give epochs or systems, not both; systems set their epochs, as in neumf(epochs=5)")
    kinds = Ratings | Split if paper.divided else Ratings
    if not data or not all(isinstance(ratings, kinds) for ratings in data):
        raise SettingError("a study needs ratings; read files and frames with cf.read")


def _threshold(paper: Study, data: Ratings, threshold: float | None) -> float | None:
    """Return the lowest rating of a relevant item: as given, or as in the paper; None if the plan chooses it."""
    if threshold is None:
        if paper.threshold is None:
            return None
        threshold = paper.threshold(data)
    threshold = _checks.number("threshold", threshold)
    if len(data) and data.values.max() < threshold:
        raise SettingError(
            f"no rating reaches threshold={threshold:g}, the highest is {data.values.max():g}; choose a lower one"
        )
    return threshold
