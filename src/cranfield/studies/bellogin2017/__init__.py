"""Bellogín, Castells and Cantador (2017): sparsity and popularity biases, and designs that neutralise popularity.

Statistical biases in Information Retrieval metrics for recommender systems. Information Retrieval Journal 20.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from cranfield import _checks
from cranfield._errors import ImpossibleSplitError, SettingError
from cranfield.data import Ratings, counts_to_ratings, min_ratings, positives, together
from cranfield.metrics import kendall_tau_b
from cranfield.splits import Split, predefined, uniform_test
from cranfield.studies.bellogin2017 import work
from cranfield.studies.bellogin2017.exhibits import HETREC, LASTFM, MOVIELENS, absent, exhibits_of
from cranfield.studies.bellogin2017.work import BiasNumbers, BiasWork, systems_of, units
from cranfield.studies.frame.claims import ClaimFindings, Floats, Saying, each, findings, points
from cranfield.studies.frame.study import Study, StudyFiles, StudyResults, data_names, measured, recognised

FOLDS = 5
CURVE_FOLDS = 2  # number of folds for Figures 3 and 4; Figure 5 uses one split of each simulated dataset
TARGETS = 100
LINEAR = 0.95  # a line fits if it explains at least this share of the variance
STEADY = 0.2  # a value is steady if it changes by less than this share
LEFT = 0.25  # popularity falls to random if it keeps less than this share of its lead over random in 1R
ALIKE = 0.6  # two orders of the systems are similar if tau is at least this
_each, _points = partial(each, digits=4), partial(points, form=".4f")
_LEARNING = tuple(name for name in work.SYSTEMS if name != work.RANDOM)


@dataclass(frozen=True)
class Treatment:
    """How the paper treats a dataset."""

    threshold: float
    play_counts: bool
    drawn: int | None = None


USUAL = Treatment(5.0, False)
TREATMENTS = {MOVIELENS: USUAL, HETREC: Treatment(3.0, True), LASTFM: Treatment(3.0, True, drawn=2_500)}
DIVIDED = {"lastfm-1k-temporal": LASTFM}  # datasets that come with their own split, which are recognised by name


def dataset_of(data: Ratings | Split) -> str | None:
    """Return which of the datasets it is; None for others."""
    if isinstance(data, Split):
        return DIVIDED.get(next(iter(data_names([data]))))
    title = recognised(data)
    return title if title in TREATMENTS else None


def prepared(
    data: Ratings | Split,
    *,
    threshold: float | None,
    play_counts: bool | None,
    targets: int | None,
    folds: int,
    seed: int,
) -> BiasWork:
    """Return the measurements on a set of ratings as the study uses it.

    Play counts below the threshold are dropped. The others are positive and become ratings from 1 to 5 as in Celma and
    Herrera (2008). A split is used as it is.
    """
    usual = TREATMENTS.get(dataset_of(data) or "", USUAL)
    parts = list(data) if isinstance(data, Split) else [data]
    at = usual.threshold if threshold is None else threshold
    highest = min(float(part.values.max()) for part in parts)
    if highest < at:
        raise SettingError(f"no rating reaches threshold={at:g}, the highest is {highest:g}; lower it")
    if usual.play_counts if play_counts is None else play_counts:
        parts, at = [counts_to_ratings(positives(part, threshold=at)) for part in parts], 1.0
    divided = predefined(*parts, overlap="train") if len(parts) == 2 else None
    ratings = parts[0] if divided is None else together(list(divided))
    uniform, dropped = _with_solution(ratings)
    effect = uniform_test(uniform, sigma=work.SIGMA, epsilon=work.EPSILON, seed=seed).step.effect
    chosen = int(effect["zeta"])
    wanted = _checks.whole("targets", TARGETS if targets is None else targets, at_least=11)
    percentile = int(np.count_nonzero(ratings.item_counts)) // work.GROUPS
    smallest = min(percentile, chosen)
    if wanted > smallest:
        percentiles = f"the smallest of {work.GROUPS} popularity percentiles"
        raise SettingError(
            f"targets={wanted} is more than the {smallest:,} items of "
            f"{percentiles if percentile == smallest else 'a uniform test set'}; give targets={smallest} or less"
        )
    # Another threshold is the next lower rating, if some ratings are below it too.
    lower = np.unique(ratings.values[ratings.values < at])
    return BiasWork(
        data=ratings,
        uniform_data=uniform,
        threshold=at,
        other=float(lower[-1]) if len(lower) > 1 else None,
        folds=folds,
        targets=wanted,
        nonrelevant=chosen // 100 * 100 if chosen >= 100 else chosen,
        seed=seed,
        divided=divided,
        drawn=None if divided is None else usual.drawn,
        dropped=dropped,
        sizes={key: int(effect[key]) for key in ("zeta", "eta")},
    )


def _with_solution(ratings: Ratings) -> tuple[Ratings, int]:
    """Return the ratings without the rarest items, as few as possible so that a uniform-test split exists."""
    counts = ratings.item_counts
    failed: ImpossibleSplitError | None = None
    for fewest in np.unique(counts[counts > 0]).tolist():
        kept = ratings if fewest == counts[counts > 0].min() else min_ratings(ratings, item=fewest)
        try:
            uniform_test(kept, sigma=work.SIGMA, epsilon=work.EPSILON)
        except ImpossibleSplitError as error:
            failed = failed or error
            continue
        return kept, int(np.count_nonzero((counts > 0) & (counts < fewest)))
    assert failed is not None
    raise failed


def _plan(
    data: Sequence[Ratings | Split],
    *,
    threshold: float | None,
    seed: int,
    folds: int | None,
    targets: int | None,
    play_counts: bool | None,
) -> Callable[[StudyFiles], StudyResults]:
    count, names = _checks.whole("folds", FOLDS if folds is None else folds, at_least=2), data_names(data)
    prepare = partial(prepared, threshold=threshold, play_counts=play_counts, targets=targets, folds=count, seed=seed)
    works = {name: prepare(ratings) for name, ratings in names.items()}

    def results(files: StudyFiles) -> StudyResults:
        """Train, rank and measure everything that the study needs, with one panel per set of ratings."""
        measurements = {
            name: units(f"panel-{place}", own, CURVE_FOLDS, skewed=place == 1 and not own.positive)
            for place, (name, own) in enumerate(works.items(), start=1)
        }
        numbers = measured(files, measurements)
        panels = [BiasNumbers(name, own, dataset_of(names[name]), numbers[name]) for name, own in works.items()]
        every = list(works.values())
        settings = {
            "systems": list(systems_of(seed).values()),
            "threshold": [own.threshold for own in every],
            "other threshold": [own.other for own in every],
            "target sets of 1R": every[0].targets,
            "non-relevant items of AR": [own.nonrelevant for own in every],
            "folds": count,
            "folds of curves": min(CURVE_FOLDS, count),
            "skewness": list(work.ALPHAS),
            "metrics": list(work.METRICS),
            "seed": seed,
            "not run": "; ".join(absent(panels)) or "nothing",
        }
        return StudyResults(exhibits_of(panels), claims_of(panels), settings)

    return results


BELLOGIN_2017 = Study(
    "bellogin2017",
    "Alejandro Bellogín, Pablo Castells, Iván Cantador: Statistical biases in Information Retrieval metrics for "
    "recommender systems. Information Retrieval Journal 20, 2017.",
    ("folds", "targets", "play_counts"),
    _plan,
    several=True,
    divided=True,
    threshold=None,
)


def claims_of(panels: Sequence[BiasNumbers]) -> ClaimFindings:
    """Return the verdicts on the paper's claims that apply to these ratings."""
    groups = (
        _of_density, _of_size, _of_neutral_designs, _of_uniform_test, _of_positive_ratings, _of_skewness,
        _of_incomplete_judgments, _of_bounds, _of_thresholds,
    )  # fmt: skip
    with np.errstate(invalid="ignore", divide="ignore"):  # undefined margins lead to "cannot tell"
        return findings(groups, {panel.name: panel for panel in panels})


def _of_density(panel: BiasNumbers) -> list[Saying]:
    fits, changes = {}, {}
    for system in work.SYSTEMS:
        shares, precision = panel.line("density", "AR", system)
        fits[system] = _explained(shares, precision)
        _, precision_1r = panel.line("density", "1R", system)
        changes[system] = np.abs(precision_1r / precision_1r[:, -1:] - 1).max(axis=1)
    falls = {}
    for metric in (work.MRR, work.NDCG, work.RECALL):
        curves = [panel.line("density", "AR", system, metric)[1] for system in _LEARNING]
        falls[metric] = np.array([1 - curve[:, 0] / curve[:, -1] for curve in curves])
    removed = f"with {shares[0]:.0%} of the test ratings in place of {shares[-1]:.0%}"
    steady = np.max([changes[system] for system in _LEARNING], axis=0)
    return [
        Saying(f"AR precision falls linearly with density (a line through 0 explains {LINEAR:.0%})", "Figure 4",
               np.min(list(fits.values()), axis=0) - LINEAR, "explained: " + _each(fits)),
        Saying(f"1R precision does not change with density (by less than {STEADY:.0%})", "Figure 4",
               STEADY - steady, "largest change: " + _each(changes)),
        *(Saying(f"{name} follows density (it loses more than {STEADY:.0%})", "4.2",
                 falls[metric].min(axis=0) - STEADY, f"lost {removed}: {_each(dict(zip(_LEARNING, falls[metric])))}")
          for name, metric in (("MRR", work.MRR), ("nDCG@10", work.NDCG))),
        Saying(f"Recall does not follow density (it changes by less than {STEADY:.0%})", "4.2",
               STEADY - np.abs(falls[work.RECALL]).max(axis=0),
               f"lost {removed}: {_each(dict(zip(_LEARNING, falls[work.RECALL])))}"),
    ]  # fmt: skip


def _of_size(panel: BiasNumbers) -> list[Saying]:
    if panel.rows("size").is_empty():  # there are fewer test items than targets
        return []
    products = {}
    for system in work.SYSTEMS:
        sizes, precision = panel.line("size", "1R", system)
        products[system] = precision * sizes
    ratios = {system: series[:, -1] / series[:, 0] for system, series in products.items()}
    away = np.max([np.abs(series - 1) for series in ratios.values()], axis=0)
    return [
        Saying("1R precision of random is 1/t (within 10 %)", "Equation 5",
               0.1 - np.abs(products[work.RANDOM] - 1).max(axis=1),
               "P@10 × t: " + _points(sizes, products[work.RANDOM])),
        Saying(f"1R precision of every system falls as 1/t (P@10 × t changes by less than {STEADY:.0%})", "Figure 4",
               STEADY - away, f"P@10 × t at {sizes[-1]:g} over that at {sizes[0]:g}: {_each(ratios)}"),
    ]  # fmt: skip


def _of_neutral_designs(panel: BiasNumbers) -> list[Saying]:
    leads = {design: _lead(panel, design) for design in (work.ONE, work.PERCENTILE, work.U1R, work.HEAD)}
    kept = {design: lead / leads[work.ONE] for design, lead in leads.items() if design != work.ONE}
    evidence = "share of its lead over random in 1R that popularity keeps: " + _each(kept)
    sayings = [
        Saying(f"Popularity falls to random in {design} (it keeps less than {LEFT:.0%} of its lead in 1R)", "Figure 8",
               LEFT - kept[design], f"{evidence}; {_scores(panel, design)}")
        for design in (work.PERCENTILE, work.U1R)
    ]  # fmt: skip
    sayings += [
        Saying(f"pLSA stays first in {design}", "Figure 8", _first(panel, design, work.PRECISION, work.PLSA),
               _scores(panel, design))
        for design in (work.PERCENTILE, work.U1R)
    ]  # fmt: skip
    neutral = np.maximum(kept[work.PERCENTILE], kept[work.U1R])
    return [
        *sayings,
        Saying("More bias is left in U1R than in P1R", "6.3", kept[work.U1R] - kept[work.PERCENTILE], evidence),
        Saying("Removing the head is less effective than P1R and U1R", "Figure 8", kept[work.HEAD] - neutral, evidence),
    ]


def _of_uniform_test(panel: BiasNumbers) -> list[Saying]:
    times = {
        design: panel.of(design, work.POPULARITY) / panel.of(design, work.RANDOM)
        for design in (work.AR, work.UAR, work.AI_UAR)
    }
    evidence = "popularity over random: " + _each(times)
    above = panel.of(work.UAR, work.POPULARITY) - panel.of(work.UAR, work.KNN)
    return [
        Saying("UAR leaves popularity above kNN", "Figure 8", above, _scores(panel, work.UAR)),
        Saying("AI-UAR leaves more bias than TI-UAR", "Figure 8", times[work.AI_UAR] - times[work.UAR], evidence),
    ]


def _of_positive_ratings(panel: BiasNumbers) -> list[Saying]:
    """Return the paper's claims about data in which every rating is positive."""
    if not panel.work.positive:
        return []
    from scipy.special import stdtrit

    lead = _lead(panel, work.U1R)
    critical = float(stdtrit(len(lead) - 1, 0.975)) if len(lead) > 1 else np.nan  # 5 %, two-sided
    error = lead.std(ddof=1) / np.sqrt(len(lead)) if len(lead) > 1 else np.nan
    plain = panel.work.plain
    others = np.max([panel.of(plain, system, work.BPREF) for system in (work.KNN, work.SVD, work.WRMF)], axis=0)
    return [
        Saying("Where all ratings are positive, popularity drops to random in U1R within sampling error", "6.2",
               np.array([critical * error - abs(lead.mean())]),
               f"popularity less random {lead.mean():+.5f}, standard error over splits {error:.5f}; "
               + _scores(panel, work.U1R)),
        Saying("bpref of random is high where nothing is negative: above kNN and MF", "Figure 9",
               panel.of(plain, work.RANDOM, work.BPREF) - others, _scores(panel, plain, work.BPREF)),
    ]  # fmt: skip


def _of_skewness(panel: BiasNumbers) -> list[Saying]:
    if panel.work.positive or panel.rows("skew").is_empty():
        return []
    curves = {system: panel.line("skew", "1R", system) for system in work.SYSTEMS}
    alphas = curves[work.RANDOM][0]
    values = {system: series for system, (_, series) in curves.items()}
    most = values[work.POPULARITY][:, -1] - values[work.RANDOM][:, -1]
    sayings = [
        Saying("Popularity is below random where popularity is uniform (printed .0077 and .0100)", "5.2",
               values[work.RANDOM][:, 0] - values[work.POPULARITY][:, 0],
               f"at α = 0: {_each({name: series[:, 0] for name, series in values.items()})}")
    ]  # fmt: skip
    like_random = [(system, work.RANDOM, "stays at random") for system in (work.KNN, work.SVD, work.WRMF)]
    for system, other, how in (*like_random, (work.PLSA, work.POPULARITY, "follows popularity")):
        away = np.abs(values[system] - values[other]).max(axis=1)
        claim = f"{system} {how} (within {LEFT:.0%} of popularity's lead at α = {alphas[-1]:g})"
        evidence = "; ".join(f"{name} {_points(alphas, values[name])}" for name in (system, other))
        sayings.append(Saying(claim, "Figure 5", LEFT * most - away, evidence))
    return sayings


def _of_incomplete_judgments(panel: BiasNumbers) -> list[Saying]:
    plain = panel.work.plain
    if panel.work.positive:
        return []
    return [
        Saying(f"{metric} drags pLSA down with popularity: both are below another system", "Figure 9",
               np.minimum(-_first(panel, plain, metric, work.PLSA), -_first(panel, plain, metric, work.POPULARITY)),
               f"{_scores(panel, plain, metric)}; {_scores(panel, plain)}")
        for metric in (work.BPREF, work.INFAP)
    ]  # fmt: skip


def _of_bounds(panel: BiasNumbers) -> list[Saying]:
    sayings = []
    for part, how, sign in (("size", "as |T_u| grows", -1), ("density", "as test ratings are removed", 1)):
        if panel.rows(f"bounds-{part}").is_empty():
            continue
        closer, widths = [], []
        for system in work.BOUNDED:
            places, lower = panel.line(f"bounds-{part}", "lower", system)
            width = panel.line(f"bounds-{part}", "upper", system)[1] - lower
            closer.append(sign * (width[:, -1] - width[:, 0]))
            widths.append(f"{system} {_points(places, width)}")
        claim = f"The bounds of 1R precision close {how}"
        evidence = "upper less lower: " + "; ".join(widths)
        sayings.append(Saying(claim, "Figure 3", np.min(closer, axis=0), evidence))
    return sayings


def _of_thresholds(panel: BiasNumbers) -> list[Saying]:
    own, taus = panel.work, {}
    if own.other is None:
        return []
    for design in own.designs:
        here, other = (
            np.array([panel.of(design, system, work.PRECISION, at) for system in work.SYSTEMS])
            for at in (own.threshold, own.other)
        )
        taus[design] = np.array([kendall_tau_b(here[:, split], other[:, split]) for split in range(here.shape[1])])
    claim = f"Another threshold ({own.other:g}) gives the same picture (tau of the systems at least {ALIKE:g})"
    return [Saying(claim, "3.3", np.min(list(taus.values()), axis=0) - ALIKE + 1e-9, "tau: " + _each(taus))]


def _lead(panel: BiasNumbers, design: str) -> Floats:
    """Return the lead of popularity over random."""
    return panel.of(design, work.POPULARITY) - panel.of(design, work.RANDOM)


def _first(panel: BiasNumbers, design: str, metric: str, system: str) -> Floats:
    """Return the lead of a system over the best of the others."""
    others = [panel.of(design, other, metric) for other in work.SYSTEMS if other != system]
    return panel.of(design, system, metric) - np.max(others, axis=0)


def _explained(x: Floats, values: Floats) -> Floats:
    """Return for each split the share of the variance that a line through 0 explains."""
    slope = values @ x / (x @ x)
    left = ((values - slope[:, None] * x) ** 2).sum(axis=1)
    return 1 - left / ((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)


def _scores(panel: BiasNumbers, design: str, metric: str = work.PRECISION) -> str:
    values = {system: panel.of(design, system, metric) for system in work.SYSTEMS}
    return f"{metric} in {design}: {_each(values)}"
