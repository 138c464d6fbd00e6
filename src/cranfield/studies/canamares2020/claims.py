"""Claims of Cañamares et al. (2020) about two systems under other decisions, checked on splits and users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import hypot

import numpy as np

from cranfield.studies.canamares2020 import work
from cranfield.studies.canamares2020.work import SplitNumbers
from cranfield.studies.frame.claims import (
    ClaimFindings,
    Part,
    Saying,
    counted,
    error_of_p,
    findings,
    lowest_elsewhere,
    points,
)

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

    def sayings(panel: SplitNumbers) -> list[Saying]:
        users = int(np.count_nonzero(panel.work.data.user_counts))
        return counted([said for group in groups for said in group(panel)], users=users)

    return findings(__package__, [sayings], {panel.name: panel for panel in panels})


def _leads(panel: SplitNumbers, part: str, setting: str, metric: str, sign: float = 1.0) -> list[Part]:
    """Return by how much kNN leads, or with a negative sign MF, at each ``x``."""
    lead, p = panel.lead(part, setting, metric), panel.of(part, setting, metric, work.KNN, "p")
    errors = error_of_p(lead, p).mean(axis=0)
    return [Part(sign * own, float(error)) for own, error in zip(lead.T, errors)]


def _at(parts: Sequence[Part], names: Sequence[float], places: Iterable[int]) -> dict[str, Part]:
    return {f"at {names[place]:g}": parts[place] for place in places}


def _of_the_starting_point(panel: SplitNumbers) -> list[Saying]:
    return [_by_both(panel, "start", "AM, unweighted", -1.0)]


def _by_both(panel: SplitNumbers, key: str, average: str, sign: float) -> Saying:
    """Return the claim that kNN leads by both metrics, or with a negative sign that MF does."""
    parts = {name: _leads(panel, "average", average, metric, sign)[0] for metric, name in _NAMES.items()}
    evidence = "; ".join(f"{name} {_pair(panel, 'average', average, metric)}" for metric, name in _NAMES.items())
    return Saying(key, parts, evidence)


def _of_ratios(panel: SplitNumbers) -> list[Saying]:
    knn, mf = (_leads(panel, "ratio", "full", work.NDCG, sign) for sign in (1.0, -1.0))
    curves = dict(zip((work.KNN, work.MF), panel.both("ratio", "full", work.NDCG)))
    middle = [place for place, ratio in enumerate(work.RATIOS) if abs(ratio - work.START) < 0.15]
    others = [place for place in range(len(work.RATIOS)) if place not in middle]
    peaks = {name: Part(own[:, middle].max(axis=1) - own[:, others].max(axis=1)) for name, own in curves.items()}
    best = ", ".join(f"{name} at {work.RATIOS[own.mean(axis=0).argmax()]}" for name, own in curves.items())
    return [
        Saying("ratios below", _at(knn, work.RATIOS, _BELOW)),
        Saying("ratios smallest", _at(knn, work.RATIOS, _BELOW[:2])),
        Saying("ratios above", _at(mf, work.RATIOS, _ABOVE)),
        Saying("ratios peak", peaks, f"highest: {best}"),
        Saying("opposite", {"kNN at 0.1": knn[0], "MF at 0.9": mf[-1]}),
    ]


def _of_unrated_items(panel: SplitNumbers) -> list[Saying]:
    parts = {}
    for name, shares in zip((work.KNN, work.MF), panel.both("ratio", "full", work.UNRATED)):
        for place, ratio in enumerate(work.RATIOS):
            error = panel.error("ratio", setting="full", metric=work.UNRATED, system=name, x=ratio)
            parts[f"{name} at {ratio:g}"] = Part(shares[:, place] - 0.5, error)
    return [Saying("unrated", parts)]


def _of_condensed_lists(panel: SplitNumbers) -> list[Saying]:
    knn, mf = (_leads(panel, "ratio", "condensed", work.NDCG, sign) for sign in (1.0, -1.0))
    steps: dict[str, Part] = {}
    for name in (work.KNN, work.MF):
        wanted = {"setting": "condensed", "metric": work.NDCG, "system": name}
        steps |= _steps(panel, "ratio", work.RATIOS, name, **wanted)
    below = _at(knn, work.RATIOS, _BELOW)
    return [
        Saying("condensed steady", steps),
        Saying("condensed below", below),
        Saying("condensed crossing", {**below, **_at(mf, work.RATIOS, _ABOVE)}),
    ]


def _steps(panel: SplitNumbers, part: str, places: Sequence[float], name: str, **wanted: str) -> dict[str, Part]:
    """Return by how much a curve rises from each place to the next."""
    curve = panel.curve(part, **wanted)[1]
    errors = [panel.error(part, x=place, **wanted) for place in places]
    return {
        f"{name} {before:g} to {after:g}": Part(curve[:, k + 1] - curve[:, k], hypot(*errors[k : k + 2]))
        for k, (before, after) in enumerate(pairwise(places))
    }


def _of_depth(panel: SplitNumbers) -> list[Saying]:
    positions = dict(zip((work.KNN, work.MF), panel.both("depth", "full", "position")))

    def at(name: str, place: int, sign: float, than: float) -> Part:
        error = panel.error("depth", setting="full", metric="position", system=name, x=place)
        return Part(sign * (positions[name][:, place - 1] - than), error)

    third = {f"{name}, {item}": at(name, place, sign, 10.0) for name in positions
             for item, place, sign in (("third", 3, -1.0), ("fourth", 4, 1.0))}  # fmt: skip
    tenth = {name: at(name, 10, 1.0, 50.0) for name in positions}
    deeper = tenth[work.MF].margins - tenth[work.KNN].margins
    error = hypot(*(part.error for part in tenth.values()))
    return [Saying("depth third", third), Saying("depth tenth", tenth), Saying("depth MF", Part(deeper, error))]


def _of_cutoffs(panel: SplitNumbers) -> list[Saying]:
    first, last = work.CUTOFFS[0], work.CUTOFFS[-1]
    knn, mf = (_leads(panel, "cutoff", "full", "NDCG@d", sign) for sign in (1.0, -1.0))
    parts = {f"kNN at {first}": knn[0], f"MF at {last}": mf[-1]}
    return [Saying("cutoffs", parts, named={"first": str(first), "last": str(last)})]


def _of_gains(panel: SplitNumbers) -> list[Saying]:
    said = []
    for gain in dict.fromkeys(gain for _, gain in work.GAINED if gain.startswith("g2")):
        spelled = {metric: spelling for (metric, of), spelling in work.GAINED.items() if of == gain}
        parts = {metric: _leads(panel, "gain", "full", spelling)[0] for metric, spelling in spelled.items()}
        evidence = "; ".join(f"{metric} {_pair(panel, 'gain', 'full', own)}" for metric, own in spelled.items())
        said.append(Saying("gain", parts, evidence, {"gain": gain}))
    return said


def _of_agreement(panel: SplitNumbers) -> list[Saying]:
    where = ("agreement", "condensed")
    parts = {metric.partition("(")[0]: _leads(panel, *where, metric)[0] for metric in work.AGREEMENT}
    evidence = "; ".join(f"{metric.partition('(')[0]} {_pair(panel, *where, metric)}" for metric in work.AGREEMENT)
    return [Saying("agreement", parts, evidence)]


def _of_averages(panel: SplitNumbers) -> list[Saying]:
    _, judged, relevant, geometric = work.AVERAGES
    counts = panel.work.data.user_counts.astype(np.float64)
    liked = panel.work.data.values >= panel.work.threshold
    positive = np.bincount(panel.work.data.users[liked], minlength=len(counts)).astype(np.float64)
    r = float(np.corrcoef(counts, positive)[0, 1]) if counts.std() > 0 and positive.std() > 0 else np.nan
    error = (1.0 - r**2) / np.sqrt(np.count_nonzero(counts))
    away = Part(np.array([r - _CORRELATION]), float(error), denied=_CORRELATION)
    return [
        _by_both(panel, "average judged", judged, 1.0),
        _by_both(panel, "average relevant", relevant, 1.0),
        _by_both(panel, "average geometric", geometric, -1.0),
        Saying("correlation", away, f"Pearson's correlation {r:.4f}"),
    ]


def _of_gaps(panel: SplitNumbers) -> list[Saying]:
    of_knn = {"metric": work.NDCG, "system": work.KNN}
    curves = {fill: panel.of("gaps", fill, work.NDCG, work.KNN) for fill in work.FILLS}
    steps = {fill: _steps(panel, "gaps", work.NEIGHBOURS, "k =", setting=fill, **of_knn) for fill in work.FILLS}
    reach = {fill: np.ptp(curve, axis=1) for fill, curve in curves.items()}
    falls = {}
    for fill in ("Popularity", "Average rating"):
        steepest = min(steps[fill].values(), key=lambda part: float(part.margins.mean()))
        margins = np.stack([part.margins for part in steps[fill].values()], axis=1)
        falls[fill] = Part(-lowest_elsewhere(margins), steepest.error)
    average = curves["Average rating"]
    errors = [panel.error("gaps", x=k, setting="Average rating", **of_knn) for k in work.NEIGHBOURS]
    first = {f"than {k}": Part(average[:, 0] - average[:, place], hypot(errors[0], errors[place]))
           for place, k in enumerate(work.NEIGHBOURS) if place}  # fmt: skip
    return [
        Saying("gaps none", steps["None"]),
        Saying("gaps random", steps["Random"]),
        Saying("gaps reach", Part(reach["None"] - reach["Random"])),
        Saying("gaps monotonic", falls),
        Saying("gaps one", first, f"NDCG@10: {points(work.NEIGHBOURS, average)}"),
    ]


def _of_overlap(panel: SplitNumbers) -> list[Saying]:
    said, words = [], {"k": str(panel.work.k)}
    start = {"setting": "full", "metric": work.PRECISION, "system": work.MF, "x": work.START}
    of_mf = panel.error("ratio", **start)  # type: ignore[arg-type]
    for setting, way in (("as printed", "printed"), ("liked items", "liked")):
        reduced = panel.of("overlap", setting, "reduced", work.KNN)
        mf = panel.series("ratio", **start)[: len(reduced)]  # type: ignore[arg-type]

        def error(what: str, overlap: float, of: str = setting) -> float:
            return panel.error("overlap", setting=of, metric=what, system=work.KNN, x=overlap)

        above = {f"at {overlap}": Part(reduced[:, place] - mf, hypot(error("reduced", overlap), of_mf))
                 for place, overlap in enumerate(work.OVERLAPS) if overlap > 10}  # fmt: skip
        evidence = f"P@10 of kNN {points(work.OVERLAPS, reduced)}; of MF {mf.mean():.3f}"
        said.append(Saying(f"overlap reduced {way}", above, evidence, words))
        for key, what in (("full", "full"), ("covered", "User-coverage")):
            values, ends = panel.of("overlap", setting, what, work.KNN), (work.OVERLAPS[0], work.OVERLAPS[-1])
            fall = Part(values[:, 0] - values[:, -1], hypot(*(error(what, end) for end in ends)))
            said.append(Saying(f"overlap {key} {way}", fall, named=words))
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
    parts = {}
    for name, values in p.items():
        above = np.log10(np.maximum(values, 1e-300) / _ALPHA)
        parts[name] = Part(above if name in expected else -above)
    evidence = "p, median over splits: " + ", ".join(f"{name} {np.median(values):.2g}" for name, values in p.items())
    return [Saying("significance", parts, evidence)]


def _pair(panel: SplitNumbers, part: str, setting: str, metric: str) -> str:
    knn, mf = (values[:, 0] for values in panel.both(part, setting, metric))
    lead = knn - mf
    return f"{work.KNN} {knn.mean():.4f}, {work.MF} {mf.mean():.4f}, difference {lead.min():+.4f} to {lead.max():+.4f}"
