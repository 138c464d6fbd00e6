"""Over which other choices an advice on metrics holds: other weights of the criteria, and other sizes of test sets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cranfield.assessments.advice import Evidence

LARGE = 0.5  # test sets of at least this share are large


def held(evidence: Evidence, weights: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """Return in how many of the other choices the same candidate scores highest, and their number, by kind of choice.

    ``weights``: each criterion left out, alone, and with twice its weight. ``sizes``: robustness over the large test
    sets alone (half of the whole or more), and over the small ones alone.
    """
    counted = [name for name, weight in weights.items() if weight > 0]
    best = _first(evidence, weights)
    others = [{**weights, name: factor * weights[name]} for name in counted for factor in (0, 2) if len(counted) > 1]
    others += [{name: 1.0} for name in counted if len(counted) > 1]
    kinds = {"weights": [best & _first(evidence, other) for other in others]}
    parts = [part for part in (_of_size(evidence, large=True), _of_size(evidence, large=False)) if part is not None]
    kinds["sizes"] = [best & _first(part, weights) for part in parts]
    return {kind: (sum(map(bool, same)), len(same)) for kind, same in kinds.items() if same}


def _first(evidence: Evidence, weights: Mapping[str, float]) -> set[int]:
    """Return the candidates with the highest score."""
    share = np.array([weights.get(name, 0.0) for name in evidence.criteria])
    judged = np.nan_to_num(evidence.judge(np.ones((1, evidence.systems)))[0][: len(share)])
    score = np.round(share / share.max() @ judged, 12)
    return set(np.flatnonzero(score == score.max()).tolist())


def _of_size(evidence: Evidence, *, large: bool) -> Evidence | None:
    """Return the evidence with the large or the small test sets of scenarios that have both; None if none has."""
    kept = {name: (sizes >= LARGE) == large for name, sizes in evidence.sizes.items()}
    kept = {name: part for name, part in kept.items() if 0 < part.sum() < len(part)}
    if not kept:
        return None
    samples = {name: signs[kept[name]] if name in kept else signs for name, signs in evidence.samples.items()}
    folds = {name: fold[kept[name]] if name in kept else fold for name, fold in evidence.folds.items()}
    return replace(evidence, samples=samples, folds=folds)
