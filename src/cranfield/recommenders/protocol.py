"""What a recommender is: `fit`, then `score`; adapters for other people's systems, and checks of their scores."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield.data import Ratings
from cranfield.recommenders.matrices import rating_matrix
from cranfield.recommenders.model import ProfileModel
from cranfield.recommenders.registry import SYSTEMS, displayed_name, recommender
from cranfield.recommenders.work import blas_threads, blocks


@runtime_checkable
class Recommender(Protocol):
    """A system that learns from ratings and scores items for users.

    It does not have to handle seen items, candidates, gaps or cut-offs: the ranking stage does.

    It may also offer `GivesLists.top`, `ScoresPairs.score_pairs`, and ``save(path)`` and ``load(path)`` to be saved as
    a file. The attribute ``predicts_ratings`` says whether its scores are predicted ratings. If its ``fit`` has a
    parameter ``validation``, it receives the validation part of the split, if there is one; with a parameter
    ``checkpoint``, the path of a file for the state of an unfinished training.

    Examples
    --------
    >>> import cranfield as cf
    >>> isinstance(cf.recommend, Recommender)
    False
    """

    def fit(self, train: Ratings) -> Self:
        """Learn from the training ratings."""
        ...

    def score(self, users: NDArray[np.int32]) -> NDArray[Any]:
        """Return a row of scores over all items for each user code; NaN where the method has no score."""
        ...


def predicts_ratings(system: Recommender) -> bool | None:
    """Whether the scores of a system are predicted ratings; None if an external system does not say."""
    says: bool | None = getattr(system, "predicts_ratings", None)
    return says


def fit_takes(system: Any, parameter: str) -> bool:
    """Whether the ``fit`` of a system, or of a class of them, has a certain parameter besides the training ratings."""
    try:
        return parameter in inspect.signature(system.fit).parameters
    except (TypeError, ValueError):  # a compiled method has no signature
        return False


@runtime_checkable
class GivesLists(Recommender, Protocol):
    """A recommender that can find the best items without scoring all of them.

    ``top`` is called instead of ``score`` for lists of a fixed length. If every score is needed, to fill gaps or to
    rank a given item, ``score`` is called.
    """

    def top(self, users: NDArray[np.int32], n: int, targets: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the codes and the scores of the ``n`` best items of each user, of those that the targets allow.

        Parameters
        ----------
        users
            User codes.
        n
            The length of the lists.
        targets
            A `cranfield.rankings.Targets`: ``targets.allowed(users)`` is a mask of users × items, and
            ``targets.contain(users, items)`` returns whether single items may be listed.

        Returns
        -------
        items, scores
            Two arrays of one row per user and at most ``n`` columns, in any order within a row. The code −1 or the
            score NaN means no item. An item that the targets do not allow, or that occurs twice in a row, is an error.
        """
        ...


@runtime_checkable
class ScoresProfiles(Recommender, Protocol):
    """A recommender that can score from the profile of a user outside the training set (folding in)."""

    def score_profiles(self, profiles: Any) -> NDArray[Any]:
        """Return a row of scores over all items for each profile; NaN where the method has no score.

        ``profiles`` is a sparse matrix in rows (CSR): one row per profile, one column per item code of the training
        vocabulary, ratings as entries. If the system has the attribute ``profiles_in_time = True``, it is `Ratings`
        with one user per profile, which have times, baskets and repeats, as far as the data do.
        """
        ...


@runtime_checkable
class ScoresPairs(Recommender, Protocol):
    """A recommender that can score single pairs of a user and an item without scoring all items."""

    def score_pairs(self, users: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
        """Return the score of each pair of a user code and an item code; NaN where the method has no score."""
        ...


class _MatrixModel:
    """A model of another library, fitted on the users × items matrix; NaN for users and items without ratings."""

    def fit(self, train: Ratings) -> Self:
        """Train the model."""
        self._ratings = rating_matrix(train)
        self._new_users, self._new_items = train.user_counts == 0, train.item_counts == 0
        self._fit()
        return self

    def score(self, users: NDArray[np.int32]) -> NDArray[Any]:
        """Return the model's scores."""
        block = self._score(users)
        block[:, self._new_items] = np.nan
        block[self._new_users[users]] = np.nan
        return block

    def _fit(self) -> None:
        raise NotImplementedError

    def _score(self, users: NDArray[np.int32]) -> NDArray[Any]:
        raise NotImplementedError


class ImplicitModel(_MatrixModel):
    """A model of `implicit.als`, `implicit.bpr`, `implicit.lmf` or `implicit.nearest_neighbours`, fitted on ratings.

    Models with factors score by their inner product, item neighbourhoods by their similarity matrix. NaN for users and
    items without training ratings, and for items that a neighbourhood does not reach.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def _fit(self) -> None:
        from scipy import sparse

        # implicit accepts sparse matrices but not sparse arrays.
        self._ratings = sparse.csr_matrix(self._ratings)
        # implicit has its own threads, and asks for a single-threaded BLAS.
        with warnings.catch_warnings(), blas_threads(1):
            # Its neighbourhood models warn about matrices that they created themselves.
            warnings.filterwarnings("ignore", message="Method expects CSR input")
            self.model.fit(self._ratings, show_progress=False)

    def _score(self, users: NDArray[np.int32]) -> NDArray[Any]:
        similarity = getattr(self.model, "similarity", None)
        if similarity is None or hasattr(self.model, "item_factors"):
            return np.asarray(self.model.user_factors[users] @ self.model.item_factors.T, dtype=np.float64)
        block: NDArray[Any] = (self._ratings[users] @ similarity).toarray()
        block[block == 0] = np.nan
        return block


class ScikitModel(_MatrixModel):
    """A scikit-learn-like estimator, fitted on the users × items matrix of ratings, with 0 for missing ratings.

    A user's scores are the row that the estimator reconstructs: by ``inverse_transform`` after ``transform`` (NMF,
    TruncatedSVD), by ``transform`` times ``components_`` (LatentDirichletAllocation), or by ``predict`` from the row
    itself (any multi-output regressor, which is then fitted from the matrix to the matrix). NaN for users and items
    without training ratings.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def _fit(self) -> None:
        targets = () if hasattr(self.estimator, "transform") else (self._ratings.toarray(),)
        self.estimator.fit(self._ratings, *targets)

    def _score(self, users: NDArray[np.int32]) -> NDArray[Any]:
        rows = self._ratings[users]
        if not hasattr(self.estimator, "transform"):
            block = self.estimator.predict(rows)
        elif hasattr(self.estimator, "inverse_transform"):
            block = self.estimator.inverse_transform(self.estimator.transform(rows))
        elif hasattr(self.estimator, "components_"):
            block = self.estimator.transform(rows) @ self.estimator.components_
        else:
            raise InputError(
                f"{type(self.estimator).__name__} does not return a row of scores",
                remedy="give an estimator with inverse_transform or components_, or a regressor",
            )
        return np.array(block, dtype=np.float64)


class Function:
    """A function of the training ratings and user codes that returns the users' scores of all items."""

    def __init__(self, function: Callable[[Ratings, NDArray[np.int32]], Any]) -> None:
        self.function = function

    def fit(self, train: Ratings) -> Self:
        """Keep the training ratings."""
        self._train = train
        return self

    def score(self, users: NDArray[np.int32]) -> NDArray[Any]:
        """Call the function."""
        scores: NDArray[Any] = self.function(self._train, users)
        return scores


def as_recommender(system: Any, seed: int | None = None) -> Recommender:
    """Return the recommender for a spelling, a model or a function.

    The system is a spelling, whose seed is ``seed`` if it uses random numbers; an object with ``fit`` and ``score``,
    taken as it is; a model of `implicit`; a scikit-learn-like object with ``fit`` and ``transform`` or ``predict``; or
    a function ``f(train, users)``.
    """
    if isinstance(system, str):
        return recommender(system, seed)
    if type(system).__module__.split(".")[0] == "implicit":
        return ImplicitModel(system)
    # A class has these methods too, but only an instance can be trained.
    methods = ("fit", "score", "transform", "predict")
    has = {name: hasattr(system, name) and not isinstance(system, type) for name in methods}
    if has["fit"] and (has["transform"] or has["predict"]):
        return ScikitModel(system)
    if has["fit"] and has["score"]:
        own: Recommender = system
        return own
    if callable(system) and not isinstance(system, type):
        return Function(system)
    raise SettingError(
        f"{system!r} is not a system; give a name such as 'knn(k=100)', an object with fit(train) and score(users), "
        "a model of implicit or scikit-learn, or a function of (train, users)"
    )


def named_systems(systems: Any, seed: int | None = None) -> dict[str, Recommender]:
    """Return recommenders by the names of their runs, given one system, several, or a mapping from names to systems.

    See `as_recommender`. An object without an attribute ``name`` is named after its class, a function after itself.
    """
    if isinstance(systems, Mapping):
        pairs = [(str(name), system) for name, system in systems.items()]
    elif isinstance(systems, Sequence) and not isinstance(systems, str):
        pairs = [(system_name(system), system) for system in systems]
    else:
        pairs = [(system_name(systems), systems)]
    if not pairs:
        raise SettingError("no system is given; name at least one, such as 'popularity'")
    named: dict[str, Recommender] = {}
    for name, system in pairs:
        if name in named:
            raise SettingError(f"two systems are called {name!r}; give a mapping from distinct names to systems")
        named[name] = as_recommender(system, seed)
    return named


def system_name(system: Any) -> str:
    """Return the name of a system that was passed without one."""
    if isinstance(system, str):
        return displayed_name(system)
    own = getattr(system, "name", None) or getattr(system, "__name__", None)
    if not isinstance(own, str):
        return type(system).__name__
    return displayed_name(own) if type(system) is SYSTEMS.get(own) else own


def as_array(values: Any) -> NDArray[Any]:
    """Return a system's scores as an array; a PyTorch tensor may require gradients or be on another device."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def checked_scores(system: str, scores: Any, shape: tuple[int, int]) -> NDArray[Any]:
    """Return a writeable block of scores, or raise an error if the system returned something else.

    Single precision stays as it is; everything else becomes double. Many systems write −∞ for an item they leave out,
    so it counts as NaN.
    """
    try:
        block = as_array(scores)
        if block.dtype.kind not in "biufO":
            raise TypeError
        block = np.array(block, dtype=np.float32 if block.dtype == np.float32 else np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{system} returned a {type(scores).__name__} as scores, not an array of real numbers",
            remedy="return one row per user and one column per item, NaN if the system cannot score the item",
        ) from None
    if block.shape != shape:
        raise InputError(
            f"{system} returned scores of shape {block.shape} for {shape[0]} users and {shape[1]} items",
            remedy="return one row per user and one column per item",
        )
    block[block == -np.inf] = np.nan
    return block


def pair_scores(
    name: str, system: Recommender, users: NDArray[Any], items: NDArray[Any], n_items: int
) -> NDArray[np.float64]:
    """Return the score of each pair of a user code and an item code; NaN where the system has no score."""
    if isinstance(system, ScoresPairs):
        scores = system.score_pairs(users, items)
        return checked_scores(name, np.asarray(scores)[None, :], (1, len(users)))[0].astype(np.float64)
    known, row_of = np.unique(users, return_inverse=True)
    scores = np.empty(len(users))
    order = np.argsort(row_of, kind="stable")
    for block in blocks(len(known), n_items):
        rows = known[block]
        first, last = np.searchsorted(row_of[order], [block.start, block.start + len(rows)])
        pairs = order[first:last]
        values = checked_scores(name, system.score(rows.astype(np.int32)), (len(rows), n_items))
        scores[pairs] = values[row_of[pairs] - block.start, items[pairs]]
    return scores


def from_profiles(name: str, system: Recommender) -> ScoresProfiles:
    """Return the system if it can score from profiles, or raise an error that names those that can."""
    if isinstance(system, ScoresProfiles):
        return system
    able = sorted(known for known, kind in SYSTEMS.items() if isinstance(kind, type) and issubclass(kind, ProfileModel))
    raise SettingError(
        f"{name} cannot score from a profile alone, so it has no lists for users who are held out whole; choose "
        f"another split, or systems that can: {', '.join(able)}"
    )
