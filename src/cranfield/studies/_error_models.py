"""The models of Aftab and Ramampiaro (2022): how each is spelled here, and which can be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cranfield._errors import CranfieldError
from cranfield._spelling import parse
from cranfield.data import Ratings
from cranfield.recommenders import SYSTEMS, displayed_name, recommender

MF, BPR, NCF, LCNN = "MF", "BPR", "NCF", "LC-NN"
PAPER = (MF, BPR, NCF, LCNN)
"""The models of the paper's tables."""

BPRMF, NCF_CONTEXT, LCNN_CONTEXT, MEAN = "BPR-MF", "NCF, context", "LC-NN, context", "item mean"

_ROLES = {"svd": MF, "bpr-triplet": BPR, "bprmf": BPRMF, "neumf": NCF, "lc-nn": LCNN, "average": MEAN}
"""What systems are called in this study."""

_SPELLED: Mapping[str, str] = {
    MF: "svd",
    BPR: "bpr-triplet",
    BPRMF: "bprmf(factors=50, epochs=100)",
    NCF: "neumf",
    NCF_CONTEXT: "neumf",
    LCNN: "lc-nn",
    LCNN_CONTEXT: "lc-nn",
    MEAN: "average",
}


@dataclass(frozen=True)
class ErrorModels:
    """The models that are run, by the names of this study, and why others are not."""

    spelled: Mapping[str, str]
    absent: Mapping[str, str]


def models_for(data: Ratings, systems: Sequence[str] | None, seed: int) -> ErrorModels:
    """Return the models that can be run on a set of ratings: those of the study, or systems that are given."""
    if systems is not None:
        named = {_ROLES.get(parse(system).name, displayed_name(system)): system for system in systems}
        return ErrorModels({name: _seeded(system, seed) for name, system in named.items()}, {})
    context = data.user_features is not None or data.item_features is not None
    spelled: dict[str, str] = {}
    absent: dict[str, str] = {}
    for name, system in _SPELLED.items():
        if parse(system).name not in SYSTEMS:
            absent[name] = "there is no such system in this version"
            continue
        if name in (NCF_CONTEXT, LCNN_CONTEXT) and not context:
            absent[name] = "the ratings come without columns of users or items"
            continue
        try:
            spelled[name] = _seeded(system, seed)
        except CranfieldError as error:
            absent[name] = str(error)
    return ErrorModels(spelled, absent)


def _seeded(system: str, seed: int) -> str:
    """Return a spelling with a seed, where the system draws."""
    parsed = parse(system)
    drawn = hasattr(recommender(system), "seed") and "seed" not in dict(parsed.parameters)
    parameters = (*parsed.parameters, ("seed", seed)) if drawn else parsed.parameters
    return str(type(parsed)(parsed.name, parameters, parsed.cutoff))
