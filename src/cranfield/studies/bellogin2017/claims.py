"""Claims of Bellogín et al. (2017) about sparsity and popularity biases, checked on splits of ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from cranfield.metrics import kendall_tau_b
from cranfield.studies.bellogin2017.work import (
    AI_UAR,
    AR,
    BOUNDED,
    BPREF,
    HEAD,
    INFAP,
    KNN,
    MRR,
    NDCG,
    ONE,
    PERCENTILE,
    PLSA,
    POPULARITY,
    PRECISION,
    RANDOM,
    RECALL,
    SVD,
    SYSTEMS,
    U1R,
    UAR,
    WRMF,
    BiasNumbers,
    in_design,
)
from cranfield.studies.frame import ClaimFindings, Floats, Saying, findings, points
from cranfield.studies.frame import each as each_of

LINEAR = 0.95
"""A line fits if it explains at least this share of the variance."""
STEADY = 0.2
"""A value is steady if it changes by less than this share."""
LEFT = 0.25
"""Popularity falls to random if it keeps less than this share of its lead over random in 1R."""
ALIKE = 0.6
"""Two orders of the systems are similar if tau is at least this."""
_LEARNING = tuple(name for name in SYSTEMS if name != RANDOM)


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
    for system in SYSTEMS:
        shares, precision = _curve(panel, "density", "AR", PRECISION, system)
        fits[system] = _explained(shares, precision)
        _, precision_1r = _curve(panel, "density", "1R", PRECISION, system)
        changes[system] = np.abs(precision_1r / precision_1r[:, -1:] - 1).max(axis=1)
    falls = {
        metric: np.array([_fall(_curve(panel, "density", "AR", metric, system)[1]) for system in _LEARNING])
        for metric in (MRR, NDCG, RECALL)
    }
    least, most = shares[0], shares[-1]
    removed = f"with {least:.0%} of the test ratings in place of {most:.0%}"
    steady = np.max([changes[system] for system in _LEARNING], axis=0)
    return [
        Saying(f"AR precision falls linearly with density (a line through 0 explains {LINEAR:.0%})", "Figure 4",
               np.min(list(fits.values()), axis=0) - LINEAR, "explained: " + _each(fits)),
        Saying(f"1R precision does not change with density (by less than {STEADY:.0%})", "Figure 4",
               STEADY - steady, "largest change: " + _each(changes)),
        *(Saying(f"{name} follows density (it loses more than {STEADY:.0%})", "4.2",
                 falls[metric].min(axis=0) - STEADY, f"lost {removed}: {_each(dict(zip(_LEARNING, falls[metric])))}")
          for name, metric in (("MRR", MRR), ("nDCG@10", NDCG))),
        Saying(f"Recall does not follow density (it changes by less than {STEADY:.0%})", "4.2",
               STEADY - np.abs(falls[RECALL]).max(axis=0),
               f"lost {removed}: {_each(dict(zip(_LEARNING, falls[RECALL])))}"),
    ]  # fmt: skip


def _of_size(panel: BiasNumbers) -> list[Saying]:
    if panel.rows("size").is_empty():  # there are fewer test items than targets
        return []
    products = {}
    for system in SYSTEMS:
        sizes, precision = _curve(panel, "size", "1R", PRECISION, system)
        products[system] = precision * sizes
    ratios = {system: series[:, -1] / series[:, 0] for system, series in products.items()}
    away = np.max([np.abs(series - 1) for series in ratios.values()], axis=0)
    return [
        Saying("1R precision of random is 1/t (within 10 %)", "Equation 5",
               0.1 - np.abs(products[RANDOM] - 1).max(axis=1),
               "P@10 × t: " + _points(sizes, products[RANDOM])),
        Saying(f"1R precision of every system falls as 1/t (P@10 × t changes by less than {STEADY:.0%})", "Figure 4",
               STEADY - away, f"P@10 × t at {sizes[-1]:g} over that at {sizes[0]:g}: {_each(ratios)}"),
    ]  # fmt: skip


def _of_neutral_designs(panel: BiasNumbers) -> list[Saying]:
    leads = {design: _lead(panel, design) for design in (ONE, PERCENTILE, U1R, HEAD)}
    kept = {design: lead / leads[ONE] for design, lead in leads.items() if design != ONE}
    evidence = "share of its lead over random in 1R that popularity keeps: " + _each(kept)
    sayings = [
        Saying(f"Popularity falls to random in {design} (it keeps less than {LEFT:.0%} of its lead in 1R)", "Figure 8",
               LEFT - kept[design], f"{evidence}; {_scores(panel, design)}")
        for design in (PERCENTILE, U1R)
    ]  # fmt: skip
    sayings += [
        Saying(f"pLSA stays first in {design}", "Figure 8", _first(panel, design, PRECISION, PLSA),
               _scores(panel, design))
        for design in (PERCENTILE, U1R)
    ]  # fmt: skip
    neutral = np.maximum(kept[PERCENTILE], kept[U1R])
    return [
        *sayings,
        Saying("More bias is left in U1R than in P1R", "6.3", kept[U1R] - kept[PERCENTILE], evidence),
        Saying("Removing the head is less effective than P1R and U1R", "Figure 8", kept[HEAD] - neutral, evidence),
    ]


def _of_uniform_test(panel: BiasNumbers) -> list[Saying]:
    times = {
        design: in_design(panel, design, PRECISION, POPULARITY) / in_design(panel, design, PRECISION, RANDOM)
        for design in (AR, UAR, AI_UAR)
    }
    evidence = "popularity over random: " + _each(times)
    above = in_design(panel, UAR, PRECISION, POPULARITY) - in_design(panel, UAR, PRECISION, KNN)
    return [
        Saying("UAR leaves popularity above kNN", "Figure 8", above, _scores(panel, UAR)),
        Saying("AI-UAR leaves more bias than TI-UAR", "Figure 8", times[AI_UAR] - times[UAR], evidence),
    ]


def _of_positive_ratings(panel: BiasNumbers) -> list[Saying]:
    """Return the paper's claims about data in which every rating is positive."""
    if not panel.work.positive:
        return []
    lead = _lead(panel, U1R)
    error = lead.std(ddof=1) / np.sqrt(len(lead)) if len(lead) > 1 else np.nan
    plain = panel.work.plain
    others = np.max([in_design(panel, plain, BPREF, system) for system in (KNN, SVD, WRMF)], axis=0)
    return [
        Saying("Where all ratings are positive, popularity drops to random in U1R within sampling error", "6.2",
               np.array([_t_of_95(len(lead) - 1) * error - abs(lead.mean())]),
               f"popularity less random {lead.mean():+.5f}, standard error over splits {error:.5f}; "
               + _scores(panel, U1R)),
        Saying("bpref of random is high where nothing is negative: above kNN and MF", "Figure 9",
               in_design(panel, plain, BPREF, RANDOM) - others, _scores(panel, plain, BPREF)),
    ]  # fmt: skip


def _of_skewness(panel: BiasNumbers) -> list[Saying]:
    if panel.work.positive or panel.rows("skew").is_empty():
        return []
    curves = {system: _curve(panel, "skew", "1R", PRECISION, system) for system in SYSTEMS}
    alphas = curves[RANDOM][0]
    values = {system: series for system, (_, series) in curves.items()}
    most = values[POPULARITY][:, -1] - values[RANDOM][:, -1]
    sayings = [
        Saying("Popularity is below random where popularity is uniform (printed .0077 and .0100)", "5.2",
               values[RANDOM][:, 0] - values[POPULARITY][:, 0],
               f"at α = 0: {_each({name: series[:, 0] for name, series in values.items()})}")
    ]  # fmt: skip
    for system in (KNN, SVD, WRMF):
        away = np.abs(values[system] - values[RANDOM]).max(axis=1)
        sayings.append(
            Saying(f"{system} stays at random (within {LEFT:.0%} of popularity's lead at α = {alphas[-1]:g})",
                   "Figure 5", LEFT * most - away, f"{system} {_points(alphas, values[system])}; "
                   f"{RANDOM} {_points(alphas, values[RANDOM])}")
        )  # fmt: skip
    away = np.abs(values[PLSA] - values[POPULARITY]).max(axis=1)
    sayings.append(
        Saying(f"pLSA follows popularity (within {LEFT:.0%} of popularity's lead at α = {alphas[-1]:g})", "Figure 5",
               LEFT * most - away, f"{PLSA} {_points(alphas, values[PLSA])}; "
               f"{POPULARITY} {_points(alphas, values[POPULARITY])}")
    )  # fmt: skip
    return sayings


def _of_incomplete_judgments(panel: BiasNumbers) -> list[Saying]:
    plain = panel.work.plain
    if panel.work.positive:
        return []
    return [
        Saying(f"{metric} drags pLSA down with popularity: both are below another system", "Figure 9",
               np.minimum(-_first(panel, plain, metric, PLSA), -_first(panel, plain, metric, POPULARITY)),
               f"{_scores(panel, plain, metric)}; {_scores(panel, plain)}")
        for metric in (BPREF, INFAP)
    ]  # fmt: skip


def _of_bounds(panel: BiasNumbers) -> list[Saying]:
    widths = {}
    parts = [part for part in ("size", "density") if not panel.rows(f"bounds-{part}").is_empty()]
    for part in parts:
        for system in BOUNDED:
            places, lower = _curve(panel, f"bounds-{part}", "lower", PRECISION, system)
            _, upper = _curve(panel, f"bounds-{part}", "upper", PRECISION, system)
            widths[part, system] = (places, upper - lower)
    first, last = {"size": 0, "density": -1}, {"size": -1, "density": 0}
    closer = {
        part: np.min([widths[part, system][1][:, first[part]] - widths[part, system][1][:, last[part]]
                      for system in BOUNDED], axis=0)
        for part in parts
    }  # fmt: skip
    names = {"size": "as |T_u| grows", "density": "as test ratings are removed"}
    return [
        Saying(f"The bounds of 1R precision close {names[part]}", "Figure 3", closer[part],
               "upper less lower: " + "; ".join(
                   f"{system} {_points(widths[part, system][0], widths[part, system][1])}" for system in BOUNDED))
        for part in parts
    ]  # fmt: skip


def _of_thresholds(panel: BiasNumbers) -> list[Saying]:
    work, taus = panel.work, {}
    if work.other is None:
        return []
    for design in work.designs:
        here, other = (
            np.array([in_design(panel, design, PRECISION, system, at) for system in SYSTEMS])
            for at in (work.threshold, work.other)
        )
        taus[design] = np.array([kendall_tau_b(here[:, split], other[:, split]) for split in range(here.shape[1])])
    claim = f"Another threshold ({work.other:g}) gives the same picture (tau of the systems at least {ALIKE:g})"
    return [Saying(claim, "3.3", np.min(list(taus.values()), axis=0) - ALIKE + 1e-9, "tau: " + _each(taus))]


def _lead(panel: BiasNumbers, design: str) -> Floats:
    """Return the lead of popularity over random."""
    return in_design(panel, design, PRECISION, POPULARITY) - in_design(panel, design, PRECISION, RANDOM)


def _first(panel: BiasNumbers, design: str, metric: str, system: str) -> Floats:
    """Return the lead of a system over the best of the others."""
    others = [in_design(panel, design, metric, other) for other in SYSTEMS if other != system]
    return in_design(panel, design, metric, system) - np.max(others, axis=0)


def _explained(x: Floats, values: Floats) -> Floats:
    """Return for each split the share of the variance that a line through 0 explains."""
    slope = values @ x / (x @ x)
    left = ((values - slope[:, None] * x) ** 2).sum(axis=1)
    return 1 - left / ((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)


def _fall(values: Floats) -> Floats:
    """Return how far a curve is lower at its first point than at its last, as a share of the last value."""
    return np.asarray(1 - values[:, 0] / values[:, -1])


def _t_of_95(freedom: int) -> float:
    """Return the two-sided 5 % critical value of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975)) if freedom > 0 else np.nan


def _each(values: Mapping[str, Floats]) -> str:
    return each_of(values, 4)


def _scores(panel: BiasNumbers, design: str, metric: str = PRECISION) -> str:
    values = {system: in_design(panel, design, metric, system) for system in SYSTEMS}
    return f"{metric} in {design}: {_each(values)}"


def _points(places: Floats, values: Floats) -> str:
    return points(places, values, ".4f")


def _curve(panel: BiasNumbers, part: str, setting: str, metric: str, system: str) -> tuple[Floats, Floats]:
    return panel.curve(part, setting=setting, metric=metric, system=system)
