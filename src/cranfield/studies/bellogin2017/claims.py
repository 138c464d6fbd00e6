"""Claims of Bellogín et al. (2017) about sparsity and popularity biases, checked on splits of ratings and users."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import hypot

import numpy as np

from cranfield.studies.bellogin2017 import work
from cranfield.studies.bellogin2017.work import BiasNumbers
from cranfield.studies.frame.claims import ClaimFindings, Floats, Part, Parts, Saying, counted, each, findings, points

_each, _points = partial(each, digits=4), partial(points, form=".4f")
_LEARNING = tuple(name for name in work.PAPER if name != work.RANDOM)
_MF = (work.SVD, work.WRMF)


def claims_of(panels: Sequence[BiasNumbers]) -> ClaimFindings:
    """Return the verdicts on the paper's claims that apply to these ratings."""
    groups = (
        _of_systems, _of_density, _of_order, _of_size, _of_neutral_designs, _of_uniform_test, _of_positive_ratings,
        _of_skewness, _of_incomplete_judgments, _of_bounds, _of_thresholds,
    )  # fmt: skip

    def sayings(panel: BiasNumbers) -> list[Saying]:
        users = int(np.count_nonzero(panel.work.data.user_counts))
        return counted([said for group in groups for said in group(panel)], users=users)

    with np.errstate(invalid="ignore", divide="ignore"):  # undefined margins lead to "cannot tell"
        return findings(__package__, [sayings], {panel.name: panel for panel in panels})


def _above(panel: BiasNumbers, designs: Sequence[str], high: str, rivals: Sequence[str]) -> Parts:
    """Return by how much a system is above each of its rivals, in each design."""
    return {
        f"{design}: {high} above {rival}": panel.above(design, high, rival)
        for design in designs
        for rival in rivals
        if rival != high
    }


def _of_systems(panel: BiasNumbers) -> list[Saying]:
    designs = [design for design in work.FIGURE_2 if design in panel.work.designs]
    evidence = "; ".join(_scores(panel, design) for design in designs)
    above = partial(_above, panel, designs)
    expected = panel.series("expected", setting=panel.work.plain)
    random = panel.of(panel.work.plain, work.RANDOM)
    error = panel.error("design", setting=panel.work.plain, metric=work.PRECISION, system=work.RANDOM)
    equation = Part(random - expected, error, denied=float(expected.mean()))
    return [
        Saying("best", above(work.PLSA, work.PAPER), evidence),
        Saying("second", above(work.POPULARITY, (work.KNN, *_MF)), evidence),
        Saying("MF svd", above(work.SVD, [work.KNN]), evidence),
        Saying("MF wrmf", above(work.WRMF, [work.KNN]), evidence),
        Saying(
            "MF normalised", {**above(work.SVD, [work.NORMALISED]), **above(work.WRMF, [work.NORMALISED])}, evidence
        ),
        Saying("second normalised", above(work.POPULARITY, [work.NORMALISED]), evidence),
        Saying("expected", equation, f"random {random.mean():.5f}, σδ {expected.mean():.5f}"),
    ]


def _kept(
    panel: BiasNumbers, way: str, metric: str, systems: Sequence[str], power: float, denied: float | None = None
) -> Parts:
    """Return what each system has with the fewest test ratings, less s**power of what it has with all of them.

    Errors are bounded from above, as if both numbers came from other users.
    """
    parts = {}
    for system in systems:
        shares, values = panel.line("density", way, system, metric)
        errors = panel.errors("density", way, system, metric)
        factor = (shares[0] / shares[-1]) ** power
        margins = values[:, 0] - factor * values[:, -1]
        lost = None if denied is None else denied * (1.0 - shares[0] / shares[-1]) * float(values[:, -1].mean())
        parts[system] = Part(margins, hypot(errors[0], factor * errors[-1]), lost)
    return parts


def _of_density(panel: BiasNumbers) -> list[Saying]:
    lost: dict[str, dict[str, Floats]] = {}
    for metric in work.DENSITY_METRICS:
        curves = {system: panel.line("density", "AR", system, metric) for system in work.PAPER}
        lost[metric] = {system: 1 - own[:, 0] / own[:, -1] for system, (_, own) in curves.items()}
    shares = next(iter(curves.values()))[0]
    removed = f"with {shares[0]:.0%} of the test ratings in place of {shares[-1]:.0%}"
    fits = {system: _explained(*panel.line("density", "AR", system)) for system in work.PAPER}
    changes = {s: own[:, 0] / own[:, -1] for s in work.PAPER for _, own in [panel.line("density", "1R", s)]}

    def said(key: str, metric: str, parts: Parts) -> Saying:
        return Saying(key, parts, f"lost {removed}: {_each(lost[metric])}")

    flatter = {
        system: Part(lost[work.PRECISION][system] - lost[work.NDCG][system], _relative_error(panel, system))
        for system in _LEARNING
    }
    return [
        Saying("linear", _kept(panel, "AR", work.PRECISION, work.PAPER, 1.0, 1.0),
               "share of the variance that a line through 0 explains: " + _each(fits)),
        Saying("constant", _kept(panel, "1R", work.PRECISION, work.PAPER, 0.0, 1.0),
               f"share that is left {removed}: {_each(changes)}"),
        *(said(f"follows {name}", metric, {system: Part(-part.margins, part.error)
               for system, part in _kept(panel, "AR", metric, _LEARNING, 0.0).items()})
          for name, metric in (("MRR", work.MRR), ("nDCG", work.NDCG))),
        said("flatter", work.NDCG, flatter),
        said("recall", work.RECALL, _kept(panel, "AR", work.RECALL, _LEARNING, 0.0, 1.0)),
    ]  # fmt: skip


def _relative_error(panel: BiasNumbers, system: str) -> float:
    """Return the error of the difference between two metrics' losses, bounded from above."""
    squares = 0.0
    for metric in (work.PRECISION, work.NDCG):
        _, values = panel.line("density", "AR", system, metric)
        errors, means = panel.errors("density", "AR", system, metric), values.mean(axis=0)
        squares += (errors[0] / means[-1]) ** 2 + (means[0] * errors[-1] / means[-1] ** 2) ** 2
    return float(np.sqrt(squares))


def _of_order(panel: BiasNumbers) -> list[Saying]:
    parts: dict[str, Part] = {}
    for way in ("AR", "1R"):
        curves = {system: panel.line("density", way, system) for system in work.PAPER}
        errors = {system: panel.errors("density", way, system)[0] for system in work.PAPER}
        order = sorted(work.PAPER, key=lambda system: -float(curves[system][1][:, -1].mean()))
        for high, low in pairwise(order):
            margins = curves[high][1][:, 0] - curves[low][1][:, 0]
            parts[f"{way}: {high} above {low}"] = Part(margins, hypot(errors[high], errors[low]))
    share = curves[work.RANDOM][0][0]
    return [Saying("order", parts, f"neighbours in the order of all test ratings, with {share:.0%} of them")]


def _of_size(panel: BiasNumbers) -> list[Saying]:
    if panel.rows("size").is_empty():  # there are fewer test items than targets
        return []
    products, falls = {}, {}
    for system in work.PAPER:
        sizes, precision = panel.line("size", "1R", system)
        errors, ratio = panel.errors("size", "1R", system), sizes[0] / sizes[-1]
        products[system] = precision * sizes
        if system != work.RANDOM:
            margins = precision[:, -1] - ratio * precision[:, 0]
            denied = float((1 - ratio) * precision[:, 0].mean())
            falls[system] = Part(margins, hypot(errors[-1], ratio * errors[0]), denied)
        else:
            of_random = {f"t = {size:g}": Part(precision[:, k] - 1 / size, float(errors[k]), denied=float(1 / size))
                         for k, size in enumerate(sizes)}  # fmt: skip
    ratios = {system: series[:, -1] / series[:, 0] for system, series in products.items()}
    return [
        Saying("random 1/t", of_random, "P@10 × t: " + _points(sizes, products[work.RANDOM])),
        Saying("every 1/t", falls, f"P@10 × t at {sizes[-1]:g} over that at {sizes[0]:g}: {_each(ratios)}"),
    ]


def _of_neutral_designs(panel: BiasNumbers) -> list[Saying]:
    names = (work.ONE, work.PERCENTILE, work.U1R, work.HEAD, work.AR, work.UAR)
    leads = {design: panel.above(design, work.POPULARITY, work.RANDOM) for design in names}
    scale = float(leads[work.ONE].margins.mean())
    kept = {design: own.margins / leads[work.ONE].margins for design, own in leads.items() if design in names[1:4]}
    evidence = "share of its lead over random in 1R that popularity keeps: " + _each(kept)

    def less(more: str, fewer: str) -> Part:
        return Part(leads[more].margins - leads[fewer].margins, hypot(leads[more].error, leads[fewer].error))

    def share(more: str, fewer: str) -> Part:
        error = hypot(leads[more].error, leads[fewer].error) / scale
        return Part(kept[more] - kept[fewer], error)

    neutral = (work.PERCENTILE, work.U1R)
    limits = {design: less(work.ONE, design) for design in neutral} | {work.UAR: less(work.AR, work.UAR)}
    return [
        Saying("limits", limits, evidence),
        *(Saying("level", Part(leads[design].margins, leads[design].error, denied=scale), _scores(panel, design),
                 {"design": design}) for design in neutral),
        Saying("more left", share(work.U1R, work.PERCENTILE), evidence),
        Saying("head", {design: share(work.HEAD, design) for design in neutral}, evidence),
        *(Saying("first", _above(panel, [design], work.PLSA, work.PAPER), _scores(panel, design), {"design": design})
          for design in (*neutral, work.UAR)),
    ]  # fmt: skip


def _of_uniform_test(panel: BiasNumbers) -> list[Saying]:
    times, squares = {}, 0.0
    for design in (work.AI_UAR, work.UAR):
        pair = [panel.of(design, system) for system in (work.POPULARITY, work.RANDOM)]
        times[design] = pair[0] / pair[1]
        for system, values in zip((work.POPULARITY, work.RANDOM), pair):
            error = panel.error("design", setting=design, metric=work.PRECISION, system=system, x=panel.work.threshold)
            squares += float((times[design].mean() * error / values.mean()) ** 2)
    evidence = _scores(panel, work.UAR)
    more = Part(times[work.AI_UAR] - times[work.UAR], float(np.sqrt(squares)))
    return [
        Saying("UAR kNN", panel.above(work.UAR, work.POPULARITY, work.KNN), evidence),
        Saying("UAR normalised", panel.above(work.UAR, work.POPULARITY, work.NORMALISED), evidence),
        Saying("AI-UAR", more, "popularity over random: " + _each(times)),
    ]


def _of_positive_ratings(panel: BiasNumbers) -> list[Saying]:
    """Return the paper's claims about data in which every rating is positive."""
    if not panel.work.positive:
        return []
    lead, plain_lead = (panel.above(design, work.POPULARITY, work.RANDOM) for design in (work.U1R, work.ONE))
    plain = panel.work.plain
    others = {
        rival: panel.above(plain, work.RANDOM, rival, work.BPREF) for rival in (work.KNN, *_MF)
    }  # fmt: skip
    return [
        Saying("positive level", Part(lead.margins, lead.error, denied=float(plain_lead.margins.mean())),
               f"popularity less random {lead.margins.mean():+.5f}; {_scores(panel, work.U1R)}"),
        Saying("positive bpref", others, _scores(panel, plain, work.BPREF)),
    ]  # fmt: skip


def _of_skewness(panel: BiasNumbers) -> list[Saying]:
    if panel.work.positive or panel.rows("skew").is_empty():
        return []
    alphas = panel.line("skew", "1R", work.RANDOM)[0]
    values = {system: panel.line("skew", "1R", system)[1] for system in work.PAPER}
    errors = {system: panel.errors("skew", "1R", system) for system in work.PAPER}

    def away(system: str, other: str, place: int, denied: float | None = None) -> Part:
        error = hypot(errors[system][place], errors[other][place])
        return Part(values[system][:, place] - values[other][:, place], error, denied)

    most = float((values[work.POPULARITY] - values[work.RANDOM])[:, -1].mean())
    at_0 = _each({name: series[:, 0] for name, series in values.items()})
    sayings = [Saying("uniform", away(work.RANDOM, work.POPULARITY, 0), f"at α = 0: {at_0}")]
    like_random = [("like random", system, work.RANDOM) for system in (work.KNN, *_MF)]
    for key, system, other in (*like_random, ("like popularity", work.PLSA, work.POPULARITY)):
        parts = {f"α = {alpha:g}": away(system, other, place, most) for place, alpha in enumerate(alphas)}
        evidence = "; ".join(f"{name} {_points(alphas, values[name])}" for name in (system, other))
        sayings.append(Saying(key, parts, evidence, {"system": system}))
    return sayings


def _of_incomplete_judgments(panel: BiasNumbers) -> list[Saying]:
    plain = panel.work.plain
    if panel.work.positive:
        return []
    sayings = []
    for metric in (work.BPREF, work.INFAP):
        others = [name for name in work.PAPER if name not in (work.PLSA, work.POPULARITY)]
        best = max(others, key=lambda name: float(panel.of(plain, name, metric).mean()))
        parts = {low: panel.above(plain, best, low, metric) for low in (work.PLSA, work.POPULARITY)}
        evidence = f"{_scores(panel, plain, metric)}; {_scores(panel, plain)}"
        sayings.append(Saying("drag", parts, evidence, {"metric": metric}))
    return sayings


def _of_bounds(panel: BiasNumbers) -> list[Saying]:
    sayings = []
    for part, sign in (("size", -1), ("density", 1)):
        if panel.rows(f"bounds-{part}").is_empty():
            continue
        closer, widths = {}, []
        for system in work.BOUNDED:
            places, lower = panel.line(f"bounds-{part}", "lower", system)
            width = panel.line(f"bounds-{part}", "upper", system)[1] - lower
            closer[system] = Part(sign * (width[:, -1] - width[:, 0]))
            widths.append(f"{system} {_points(places, width)}")
        sayings.append(Saying(f"bounds {part}", closer, "upper less lower: " + "; ".join(widths)))
    return sayings


def _of_thresholds(panel: BiasNumbers) -> list[Saying]:
    own = panel.work
    if own.other is None:
        return []
    parts: dict[str, Part] = {}
    for design in own.designs:
        order = sorted(work.PAPER, key=lambda system: -float(panel.of(design, system).mean()))
        for high, low in pairwise(order):
            parts[f"{design}: {high} above {low}"] = panel.above(design, high, low, threshold=own.other)
    evidence = f"neighbours in the order by the threshold {own.threshold:g}, in {len(own.designs)} designs"
    return [Saying("threshold", parts, evidence, {"other": f"{own.other:g}"})]


def _explained(x: Floats, values: Floats) -> Floats:
    """Return for each split the share of the variance that a line through 0 explains."""
    slope = values @ x / (x @ x)
    left = ((values - slope[:, None] * x) ** 2).sum(axis=1)
    return np.asarray(1 - left / ((values - values.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))


def _scores(panel: BiasNumbers, design: str, metric: str = work.PRECISION) -> str:
    values = {system: panel.of(design, system, metric) for system in panel.work.systems}
    return f"{metric} in {design}: {_each(values)}"
