"""Cañamares, Castells and Moffat (2020): the decisions of an offline evaluation, and what each does to a comparison.

Offline evaluation options for recommender systems. Information Retrieval Journal 23.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from cranfield import _checks
from cranfield._errors import SettingError
from cranfield.data import Ratings
from cranfield.studies.canamares2020 import work
from cranfield.studies.canamares2020.exhibits import DATASETS, MOVIELENS, NETFLIX, exhibits_of
from cranfield.studies.canamares2020.work import SplitNumbers, SplitWork, factors, neighbours, units
from cranfield.studies.frame.claims import ClaimFindings, Floats, Saying, findings, points
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults, data_names, measured, recognised

USUAL_NEIGHBOURS = {MOVIELENS: 100, NETFLIX: 1000}  # the number of neighbours in kNN; 100 for other data


def _plan(
    data: Sequence[Ratings], *, threshold: float, seed: int, seeds: int | None, curve_seeds: int | None
) -> Callable[[StudyFiles], StudyResults]:
    wanted = _checks.whole("seeds", 10 if seeds is None else seeds)
    curves = _checks.whole("curve_seeds", min(3, wanted) if curve_seeds is None else curve_seeds)
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
    }
    return StudyResults(exhibits_of(panels), claims_of(panels), settings)


_ALPHA = 0.05
_CORRELATION = 0.962
_NAMES = {work.PRECISION: "Prec@10", work.NDCG: "NDCG@10"}
_BELOW = [place for place, ratio in enumerate(work.RATIOS) if ratio < work.START]
_ABOVE = [place for place, ratio in enumerate(work.RATIOS) if ratio > work.START]


def claims_of(panels: Sequence[SplitNumbers]) -> ClaimFindings:
    """Return the verdicts on the paper's claims."""
    groups = (
        _of_the_starting_point, _of_ratios, _of_unrated_items, _of_condensed_lists, _of_depth, _of_cutoffs, _of_gains,
        _of_agreement, _of_averages, _of_gaps, _of_overlap, _of_significance,
    )  # fmt: skip
    return findings(groups, {panel.name: panel for panel in panels})


def _of_the_starting_point(panel: SplitNumbers) -> list[Saying]:
    claim, start = "MF has the higher {} at the starting point", ("average", "AM, unweighted")
    return [_led(panel, claim.format(name), "Table 2", *start, metric, sign=-1.0) for metric, name in _NAMES.items()]


def _of_ratios(panel: SplitNumbers) -> list[Saying]:
    lead = panel.lead("ratio", "full", work.NDCG)
    evidence = _leads("NDCG@10", work.RATIOS, lead)
    curves = panel.both("ratio", "full", work.NDCG)
    middle = [place for place, ratio in enumerate(work.RATIOS) if abs(ratio - work.START) < 0.15]
    others = [place for place in range(len(work.RATIOS)) if place not in middle]
    peak = np.min([curve[:, middle].max(axis=1) - curve[:, others].max(axis=1) for curve in curves], axis=0)
    tops = [work.RATIOS[curve.mean(axis=0).argmax()] for curve in curves]
    best = ", ".join(f"{name} at {ratio}" for name, ratio in zip((work.KNN, work.MF), tops))
    return [
        Saying("kNN leads at the split ratios below 0.5", "Figure 2", lead[:, _BELOW].min(axis=1), evidence),
        Saying("kNN leads at the smallest split ratios (0.1 and 0.2)", "Figure 2", lead[:, :2].min(axis=1), evidence),
        Saying("MF leads at the split ratios above 0.5", "Figure 2", -lead[:, _ABOVE].max(axis=1), evidence),
        Saying("Scores are highest at a split ratio around 0.5 (0.4 to 0.6)", "Figure 2", peak, f"highest: {best}"),
    ]


def _of_unrated_items(panel: SplitNumbers) -> list[Saying]:
    shares = np.minimum(*panel.both("ratio", "full", work.UNRATED))
    evidence = "lower share of the two systems: " + points(work.RATIOS, shares)
    claim = "At no split ratio is less than half of the top ten unrated"
    return [Saying(claim, "Figure 3", shares.min(axis=1) - 0.5, evidence)]


def _of_condensed_lists(panel: SplitNumbers) -> list[Saying]:
    lead = panel.lead("ratio", "condensed", work.NDCG)
    curves = panel.both("ratio", "condensed", work.NDCG)
    steps = np.min([np.diff(curve, axis=1).min(axis=1) for curve in curves], axis=0)
    values = "; ".join(f"{name} {points(work.RATIOS, curve)}" for name, curve in zip((work.KNN, work.MF), curves))
    evidence = _leads("NDCG@10", work.RATIOS, lead)
    crossing = np.minimum(lead[:, _BELOW].min(axis=1), -lead[:, _ABOVE].max(axis=1))
    return [
        Saying("On condensed lists scores improve steadily with the training share", "Figure 4", steps, values),
        Saying("On condensed lists kNN leads where there are more test than training ratings", "Figure 4",
               lead[:, _BELOW].min(axis=1), evidence),
        Saying("On condensed lists the order is still reversed at a split of 0.5", "Figure 4", crossing, evidence),
    ]  # fmt: skip


def _of_depth(panel: SplitNumbers) -> list[Saying]:
    knn, mf = panel.both("depth", "full", "position")
    evidence = f"positions of the first ten: {work.KNN} {_row(knn)}; {work.MF} {_row(mf)}"
    third = np.minimum(10.0 - np.maximum(knn[:, 2], mf[:, 2]), np.minimum(knn[:, 3], mf[:, 3]) - 10.0)
    return [
        Saying("Only the first three condensed items are in the full top ten, on average", "Figure 5",
               third, evidence),
        Saying("The tenth condensed item stands beyond the fiftieth place of the full list", "Figure 5",
               np.minimum(knn[:, 9], mf[:, 9]) - 50.0, evidence),
        Saying("MF goes deeper than kNN for its first ten condensed items", "Figure 5", mf[:, 9] - knn[:, 9], evidence),
    ]  # fmt: skip


def _of_cutoffs(panel: SplitNumbers) -> list[Saying]:
    lead = panel.lead("cutoff", "full", "NDCG@d")
    margin = np.minimum(lead[:, 0], -lead[:, -1])
    claim = f"kNN leads at a small cut-off ({work.CUTOFFS[0]}), and MF overtakes it at a large one ({work.CUTOFFS[-1]})"
    return [Saying(claim, "Figure 6", margin, _leads("NDCG@d", work.CUTOFFS, lead))]


def _of_gains(panel: SplitNumbers) -> list[Saying]:
    return [
        _led(panel, f"kNN leads by {metric} with the gain {gain}", "Table 3", "gain", "full", spelling)
        for (metric, gain), spelling in work.GAINED.items()
        if gain.startswith("g2")
    ]


def _of_agreement(panel: SplitNumbers) -> list[Saying]:
    claim = "By {} the condensed lists of kNN are closer to the test order"
    return [
        _led(panel, claim.format(metric.partition("(")[0]), "Decision C2", "agreement", "condensed", metric)
        for metric in work.AGREEMENT
    ]


def _of_averages(panel: SplitNumbers) -> list[Saying]:
    def said(average: str, leader: str) -> Saying:
        sign = 1.0 if leader == work.KNN else -1.0
        leads = [sign * panel.lead("average", average, metric)[:, 0] for metric in _NAMES]
        evidence = "; ".join(f"{name} {_pair(panel, 'average', average, metric)}" for metric, name in _NAMES.items())
        claim = f"{leader} leads by both metrics, averaged as {average}"
        return Saying(claim, "Table 4", np.min(leads, axis=0), evidence)

    _, judged, relevant, geometric = work.AVERAGES
    counts = panel.work.data.user_counts.astype(np.float64)
    liked = panel.work.data.values >= panel.work.threshold
    positive = np.bincount(panel.work.data.users[liked], minlength=len(counts)).astype(np.float64)
    correlation = float(np.corrcoef(counts, positive)[0, 1]) if counts.std() > 0 and positive.std() > 0 else np.nan
    margin = np.array([0.0005 - abs(correlation - _CORRELATION)])
    claim = "Ratings and positive ratings per user correlate at .962"
    return [
        said(judged, work.KNN),
        said(relevant, work.KNN),
        said(geometric, work.MF),
        Saying(claim, "Decision C3", margin, f"Pearson's correlation {correlation:.4f}"),
    ]


def _of_gaps(panel: SplitNumbers) -> list[Saying]:
    curves = {fill: panel.of("gaps", fill, work.NDCG, work.KNN) for fill in work.FILLS}
    evidence = "; ".join(f"{fill}: {points(work.NEIGHBOURS, curve)}" for fill, curve in curves.items())
    none, random = (np.diff(curves[fill], axis=1).min(axis=1) for fill in ("None", "Random"))
    reach = {fill: np.ptp(curve, axis=1) for fill, curve in curves.items()}
    average = curves["Average rating"]
    not_monotonic = [-np.diff(curves[fill], axis=1).min(axis=1) for fill in ("Popularity", "Average rating")]
    return [
        Saying("With gaps left out, more neighbours are better", "Figure 7", none, evidence),
        Saying("With random fill, more neighbours are better", "Figure 7", random, evidence),
        Saying("With random fill, the number of neighbours matters less than with gaps left out", "Figure 7",
               reach["None"] - reach["Random"], evidence),
        Saying("Filled by popularity or by average rating, the change is not monotonic", "Figure 7",
               np.min(not_monotonic, axis=0), evidence),
        Saying("Filled by average rating, one neighbour is best", "Figure 7",
               average[:, 0] - average[:, 1:].max(axis=1), evidence),
    ]  # fmt: skip


def _of_overlap(panel: SplitNumbers) -> list[Saying]:
    said = []
    beyond = [place for place, overlap in enumerate(work.OVERLAPS) if overlap > 10]
    start = panel.series("ratio", setting="full", metric=work.PRECISION, system=work.MF, x=work.START)
    for setting, way in (
        ("as printed", "k = 10, every rating counts 1"),
        ("liked items", f"k = {panel.work.k}, only liked items count"),
    ):
        full, reduced, covered = (
            panel.of("overlap", setting, what, work.KNN) for what in ("full", "reduced", "User-coverage")
        )
        mf = start[: len(full)]
        evidence = (
            f"reduced {points(work.OVERLAPS, reduced)}; full {points(work.OVERLAPS, full)}; "
            f"coverage {points(work.OVERLAPS, covered)}; {work.MF} {mf.mean():.3f}"
        )
        said += [
            Saying(f"Beyond an overlap of 10 the reduced average puts kNN above MF ({way})", "Figure 8",
                   (reduced[:, beyond] - mf[:, None]).min(axis=1), evidence),
            Saying(f"The full average of kNN falls with the overlap ({way})", "Figure 8",
                   full[:, 0] - full[:, -1], evidence),
            Saying(f"User coverage falls with the overlap ({way})", "Figure 8",
                   covered[:, 0] - covered[:, -1], evidence),
        ]  # fmt: skip
    return said


def _of_significance(panel: SplitNumbers) -> list[Saying]:
    """Claim that exactly three of the comparisons in Tables 3 and 4 are not significant."""
    named = {
        "Prec@10": ("gain", "full", work.PRECISION),
        "NDCG@10": ("gain", "full", work.NDCG),
        "NDCG@10 with g2": ("gain", "full", work.GAINED["NDCG@10", "g2 of decision C2"]),
        "RBP with g1": ("gain", "full", work.GAINED["RBP", "g1"]),
        "RBP with g2": ("gain", "full", work.GAINED["RBP", "g2 of decision C2"]),
        **{
            f"{name}, {average}": ("average", average, metric)
            for average in work.AVERAGES
            if average != "AM, unweighted"
            for metric, name in _NAMES.items()
        },
    }
    expected = {"NDCG@10", "RBP with g1", "Prec@10, AM, Test weighted"}
    p = {name: panel.of(*where, work.KNN, "p")[:, 0] for name, where in named.items()}
    agree = np.array([(p[name] >= _ALPHA) == (name in expected) for name in p])
    margin = np.where(agree.all(axis=0), 1.0, -1.0)
    evidence = "p, median over splits: " + ", ".join(f"{name} {np.median(values):.2g}" for name, values in p.items())
    claim = "Of Tables 3 and 4 all differ significantly except NDCG@10, RBP with g1, and Test-weighted Prec@10"
    return [Saying(claim, "Decision D", margin, evidence)]


def _led(
    panel: SplitNumbers, claim: str, where: str, part: str, setting: str, metric: str, *, sign: float = 1.0
) -> Saying:
    """Return the claim that kNN leads, or with a negative sign that MF does."""
    margin = sign * panel.lead(part, setting, metric)[:, 0]
    return Saying(claim, where, margin, _pair(panel, part, setting, metric))


def _pair(panel: SplitNumbers, part: str, setting: str, metric: str) -> str:
    knn, mf = (values[:, 0] for values in panel.both(part, setting, metric))
    lead = knn - mf
    return f"{work.KNN} {knn.mean():.4f}, {work.MF} {mf.mean():.4f}, difference {lead.min():+.4f} to {lead.max():+.4f}"


def _leads(metric: str, places: Sequence[float], lead: Floats) -> str:
    return f"{metric} of {work.KNN} less that of {work.MF}: {points(places, lead, '+.4f')}"


def _row(values: Floats) -> str:
    return ", ".join(f"{value:.1f}" for value in values.mean(axis=0))


CANAMARES_2020 = Study(
    "canamares2020",
    "Rocío Cañamares, Pablo Castells, Alistair Moffat: Offline evaluation options for recommender systems. "
    "Information Retrieval Journal 23, 2020.",
    ("seeds", "curve_seeds"),
    _plan,
    several=True,
)
