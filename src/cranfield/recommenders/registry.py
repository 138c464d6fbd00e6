"""The systems by name: ``knn(k=100, similarity=cosine)`` becomes a recommender."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType

from cranfield._errors import SettingError
from cranfield._spelling import Spelling, nearest, parse
from cranfield.recommenders.baselines import AverageRating, Popularity, Random, UserAverage
from cranfield.recommenders.biased_mf import BiasedFactors
from cranfield.recommenders.bpr import BayesianPersonalizedRanking
from cranfield.recommenders.ease import EmbarrassinglyShallow
from cranfield.recommenders.hitting_time import HittingTime
from cranfield.recommenders.item_knn import ItemNeighbours
from cranfield.recommenders.knn import UserNeighbours
from cranfield.recommenders.language_models import LanguageModelItems, LanguageModelUsers
from cranfield.recommenders.model import Model
from cranfield.recommenders.nncosngbr import ResidualItemNeighbours, ResidualUserNeighbours
from cranfield.recommenders.pure_svd import PureSVD
from cranfield.recommenders.relevance_models import RelevanceModel1, RelevanceModel2
from cranfield.recommenders.rocchio import ChiSquared, KullbackLeibler, RobertsonSelectionValue, RocchioWeights
from cranfield.recommenders.slim import SparseLinear
from cranfield.recommenders.topics import LatentDirichlet, ProbabilisticLatentSemantics
from cranfield.recommenders.uir import UserItemRelevance
from cranfield.recommenders.wrmf import WeightedFactors

_CLASSES: tuple[type[Model], ...] = (
    Random,
    Popularity,
    AverageRating,
    UserAverage,
    ChiSquared,
    KullbackLeibler,
    RobertsonSelectionValue,
    RocchioWeights,
    RelevanceModel1,
    RelevanceModel2,
    LanguageModelUsers,
    LanguageModelItems,
    ResidualUserNeighbours,
    ResidualItemNeighbours,
    UserNeighbours,
    SparseLinear,
    HittingTime,
    BiasedFactors,
    PureSVD,
    BayesianPersonalizedRanking,
    WeightedFactors,
    LatentDirichlet,
    ProbabilisticLatentSemantics,
    UserItemRelevance,
    EmbarrassinglyShallow,
    ItemNeighbours,
)

SYSTEMS: Mapping[str, type[Model]] = MappingProxyType({one.name: one for one in _CLASSES})
"""The recommenders of this package by name; the fields of each are its parameters."""


def recommender(spelling: str, seed: int | None = None) -> Model:
    """Make the recommender that ``spelling`` names, not yet fitted.

    Parameters
    ----------
    spelling
        A name, with parameters where they are not the defaults: ``"knn"``, ``"knn(k=50, overlap=5)"``.
    seed
        The seed of a system that draws at random, unless the spelling gives one.

    Examples
    --------
    >>> recommender("knn(k=50)")
    UserNeighbours(k=50, similarity='cosine', overlap=0, q=1.0, binary=False)
    >>> recommender("random", seed=7)
    Random(seed=7)
    """
    parsed = parse(spelling)
    if parsed.cutoff is not None:
        raise SettingError(f"{spelling!r} has a cut-off, which belongs to metrics; write {spelling.split('@')[0]!r}")
    if parsed.name not in SYSTEMS:
        raise SettingError(f"there is no system {parsed.name!r}{nearest(parsed.name, SYSTEMS)}")
    system = SYSTEMS[parsed.name]
    known = [one.name for one in fields(system)]
    given = dict(parsed.parameters)
    for name in given:
        if name not in known:
            hint = nearest(name, known) if known else "; it has none"
            raise SettingError(f"{parsed.name} has no parameter {name!r}{hint}")
    if seed is not None and "seed" in known:
        given.setdefault("seed", seed)
    return system(**given)


def signatures() -> list[str]:
    """Return how each system is spelled, with its parameters and their defaults.

    Examples
    --------
    >>> signatures()[:3]
    ['random(seed=0)', 'popularity(threshold=none)', 'average(damping=0, support=1)']
    """
    spelled = []
    for name, system in SYSTEMS.items():
        parameters = tuple((one.name, one.default) for one in fields(system))
        spelled.append(str(Spelling(name, parameters)))
    return spelled
