"""Cañamares, Castells and Moffat (2020): the decisions of an offline evaluation, and what each does to a comparison.

Offline evaluation options for recommender systems. Information Retrieval Journal 23.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.studies.canamares2020.claims import claims_of
from cranfield.studies.canamares2020.exhibits import DATASETS, MOVIELENS, NETFLIX, exhibits_of
from cranfield.studies.canamares2020.work import SplitNumbers, SplitWork, factors, neighbours, units
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults, data_names, differing, measured, recognised

USUAL_NEIGHBOURS = {MOVIELENS: 100, NETFLIX: 1000}  # the number of neighbours in kNN; 100 for other data


def _plan(
    data: Sequence[Ratings], *, threshold: float, seed: int, seeds: int | None, curve_seeds: int | None
) -> Callable[[StudyFiles], StudyResults]:
    wanted = _checks.whole("seeds", 10 if seeds is None else seeds)
    curves = _checks.whole("curve_seeds", min(5, wanted) if curve_seeds is None else curve_seeds)
    if curves > wanted:
        raise SettingError(
            f"curve_seeds={curves} is more than seeds={wanted}; the curves use the first splits of the starting point"
        )
    return partial(_work, data_names(data), threshold, range(seed, seed + wanted), range(seed, seed + curves))


def _work(
    data: Mapping[str, Ratings], threshold: float, seeds: Sequence[int], curve_seeds: Sequence[int], files: StudyFiles
) -> StudyResults:
    """Train, rank and measure everything that the study needs, with one panel per set of ratings."""
    titles = {dataset: name for name, dataset in DATASETS.items()}
    known = {name: titles.get(recognised(ratings) or "") for name, ratings in data.items()}
    works = {
        name: SplitWork(ratings, USUAL_NEIGHBOURS.get(known[name] or "", 100), threshold)
        for name, ratings in data.items()
    }
    places = enumerate(works.items(), start=1)
    numbers = measured(files, {name: units(f"panel-{place}", own, seeds, curve_seeds) for place, (name, own) in places})
    panels = [SplitNumbers(name, own, known[name], numbers[name]) for name, own in works.items()]
    settings = {
        "systems": [neighbours(k) for k in dict.fromkeys(own.k for own in works.values())] + [factors(seeds[0])],
        "threshold": threshold,
        "splits of the starting point": len(seeds),
        "splits of the curves": len(curve_seeds),
        "seed": seeds[0],
        "differs from the paper": differing(
            {"splits": f"{len(seeds)}, and {len(curve_seeds)} for curves", "MF": "λ = 0.1, α = 1, as its numbers ask"},
            {"splits": "1", "MF": "λ = 1, α = 0.1"},
        ),
    }
    return StudyResults(exhibits_of(panels), claims_of(panels), settings)


CANAMARES_2020 = Study(
    "canamares2020",
    "Rocío Cañamares, Pablo Castells, Alistair Moffat: Offline evaluation options for recommender systems. "
    "Information Retrieval Journal 23, 2020.",
    ("seeds", "curve_seeds"),
    _plan,
    several=True,
)
