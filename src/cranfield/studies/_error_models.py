"""The models of Aftab and Ramampiaro (2022): how each is spelled here, and which can be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from cranfield._registry import parse
from cranfield.data import Ratings
from cranfield.recommenders import displayed_name, recommender

MF, BPR, NCF, LCNN = "MF", "BPR", "NCF", "LC-NN"
PAPER = (MF, BPR, NCF, LCNN)
"""The models of the paper's tables."""

BPRMF, NCF_CONTEXT, LCNN_CONTEXT, MEAN = "BPR-MF", "NCF, context", "LC-NN, context", "item mean"

_ROLES = {"svd": MF, "bpr-triplet": BPR, "bprmf": BPRMF, "neumf": NCF, "lc-nn": LCNN, "average": MEAN}
"""The names of systems in this study."""

_SPELLED: Mapping[str, str] = {
    MF: "svd",
    BPR: "bpr-triplet",
    BPRMF: "bprmf(factors=50, epochs=100)",
    NCF: "neumf(target=rating)",
    NCF_CONTEXT: "neumf(target=rating, context={context})",
    LCNN: "lc-nn(target=rating)",
    LCNN_CONTEXT: "lc-nn(target=rating, context={context})",
    MEAN: "average",
}
_NEURAL = (BPR, NCF, NCF_CONTEXT, LCNN, LCNN_CONTEXT)


@dataclass(frozen=True)
class ErrorModels:
    """The models that are run, by their names in this study, and why others are not."""

    spelled: Mapping[str, str]
    absent: Mapping[str, str]


def models_for(data: Ratings, systems: Sequence[str] | None, seed: int, epochs: int | None = None) -> ErrorModels:
    """Return the models that can be run on a set of ratings: those of the study, or the given systems.

    ``epochs`` is the number of epochs of neural models; None for their defaults.
    """
    if systems is not None:
        named = {_ROLES.get(parse(system).name, displayed_name(system)): system for system in systems}
        return ErrorModels({name: _seeded(system, seed) for name, system in named.items()}, {})
    known = {"users": data.user_features is not None, "items": data.item_features is not None}
    context = "both" if all(known.values()) else next((whose for whose, there in known.items() if there), None)
    trainable = all(find_spec(library) is not None for library in ("jax", "optax"))
    absent: dict[str, str] = {}
    for name in _SPELLED:
        if name in _NEURAL and not trainable:
            absent[name] = "the libraries of neural systems are missing; pip install 'cranfield[neural]'"
        elif name in (NCF_CONTEXT, LCNN_CONTEXT) and context is None:
            absent[name] = "the ratings come without columns of users or items"
    run = {name: system.format(context=context) for name, system in _SPELLED.items() if name not in absent}
    own = {name: {} if epochs is None or name not in _NEURAL else {"epochs": epochs} for name in run}
    return ErrorModels({name: _seeded(system, seed, **own[name]) for name, system in run.items()}, absent)


def _seeded(system: str, seed: int, **more: int) -> str:
    """Return a spelling with further parameters, and a seed if the system is randomised."""
    parsed = parse(system)
    drawn = hasattr(recommender(system), "seed") and "seed" not in dict(parsed.parameters)
    seeds = {"seed": seed} if drawn else {}
    return str(replace(parsed, parameters=(*parsed.parameters, *more.items(), *seeds.items())))
