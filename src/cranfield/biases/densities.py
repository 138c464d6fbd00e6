"""How dense relevance is in target sets: ρ, σ, δ and t (Bellogín, Castells and Cantador 2017, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from cranfield._decisions import takes_decisions
from cranfield._errors import SettingError
from cranfield._table import Table
from cranfield.data import AUTO, Relevance
from cranfield.rankings import Ranking, RankingOptions, Targets
from cranfield.splits import Split

# Maximum number of cells (users × items) per block.
_CELLS = 1 << 24


@dataclass(frozen=True, eq=False)
class Density:
    r"""The share of relevant items in target sets, the reference for any precision.

    .. math::
        \rho_u = |T_u \cap PR_{test}(u)| / |T_u|, \quad \rho = avg_u\,\rho_u, \quad 1/t = avg_u(1/|T_u|), \quad
        \sigma = |R_{test}| / |R|, \quad \delta = |PR| / (t\,|U|)

    Parameters
    ----------
    sizes, relevant
        \|T_u\| and the number of relevant items in it, one entry per list: one list per test user, or one per relevant
        test rating in the one-relevant design.
    n_users
        \|U\|: the users with a test rating.
    n_candidates
        \|C\|: the items that can be targets of any user.
    n_ratings, n_test, n_positive
        \|R\|, \|R_test\| and \|PR\|: all ratings, the test ratings, and all ratings of at least the threshold.
    one_relevant
        Whether a list has a single relevant item (1R).
    threshold
        The lowest relevant rating.
    """

    sizes: NDArray[np.int64]
    relevant: NDArray[np.int64]
    n_users: int
    n_candidates: int
    n_ratings: int
    n_test: int
    n_positive: int
    one_relevant: bool
    threshold: float

    @cached_property
    def rho_of_lists(self) -> NDArray[np.float64]:
        """ρ_u: the share of relevant items among the targets of each list."""
        return self.relevant / np.maximum(self.sizes, 1)

    @property
    def rho(self) -> float:
        """ρ: the mean of ρ_u, which is the precision of a random ranking at any cut-off up to the size of T_u."""
        return float(self.rho_of_lists.mean())

    @property
    def sigma(self) -> float:
        """σ: the share of the ratings that are test ratings."""
        return self.n_test / self.n_ratings

    @property
    def t(self) -> float:
        """t: the harmonic mean of the sizes of the target sets."""
        return float(1.0 / (1.0 / np.maximum(self.sizes, 1)).mean())

    @property
    def delta(self) -> float:
        """δ: the density of known relevance, positive ratings over t times the number of users."""
        return self.n_positive / (self.t * self.n_users)

    @property
    def predicted_random(self) -> float:
        """E[P of random] as printed: σδ in AR (equation 4), 1/t in 1R (equation 5)."""
        return 1.0 / self.t if self.one_relevant else self.sigma * self.delta

    @property
    def symbols(self) -> str:
        """ρ, σ, δ and t in one line."""
        values = {"ρ": self.rho, "σ": self.sigma, "δ": self.delta, "t": self.t}
        return ", ".join(f"{symbol} = {value:.4g}" for symbol, value in values.items())

    def as_dict(self) -> dict[str, float]:
        """Return ρ, σ, δ, t and the prediction for random ranking, by name."""
        names = ("rho", "sigma", "delta", "t", "predicted_random")
        return {name: float(getattr(self, name)) for name in names}

    def table(self) -> Table:
        """Return the same as a table."""
        words = {
            "rho": "ρ, precision of a random ranking",
            "sigma": "σ, share of test ratings",
            "delta": "δ, density of relevance",
            "t": "t, targets per list (harmonic mean)",
            "predicted_random": "1/t (equation 5)" if self.one_relevant else "σδ (equation 4)",
        }
        rows = [[words[name], f"{value:.4g}"] for name, value in self.as_dict().items()]
        return Table(["", "value"], rows, "Density of relevance in the target sets", [])

    def __repr__(self) -> str:
        return f"Density({', '.join(f'{name}={value:.4g}' for name, value in self.as_dict().items())})"


@takes_decisions(Ranking)
def density(
    split: Split, *, threshold: float | str | None = AUTO, seed: int = 0, **decisions: Unpack[RankingOptions]
) -> Density:
    """Return the density of relevance in the target sets of a split.

    Parameters
    ----------
    split
        Training and test ratings over one vocabulary.
    {decisions}
    threshold
        The lowest relevant rating.
    seed
        Fixes the draw of targets, as in `recommend`.

    Examples
    --------
    >>> import cranfield as cf
    >>> ratings = cf.Ratings.of([1, 1, 1, 2, 2], ["a", "b", "c", "a", "c"])
    >>> split = cf.splits.predefined(ratings.keep(ratings.values > 0), cf.Ratings.of([1, 2], ["d", "b"]))
    >>> density(split)
    Density(rho=0.75, sigma=0.2857, delta=2.625, t=1.333, predicted_random=0.75)
    """
    if not isinstance(split, Split):
        raise SettingError(f"{type(split).__name__} is not a split; make one with cf.splits")
    chosen: dict[str, Any] = {"threshold": threshold, **decisions}
    ranking = Ranking(**chosen)
    targets = Targets(split.train, split.test, ranking, seed, split.item_groups)
    return density_of(targets, threshold)


def density_of(targets: Targets, threshold: float | str | None = AUTO) -> Density:
    """Return the density of relevance in these targets, for every user with a test rating."""
    test, train = targets.test, targets.train
    if test is None:
        raise SettingError("the density of relevance needs test ratings; give targets of a split")
    level = Relevance.of(test, threshold, train).threshold
    users = np.flatnonzero(test.user_counts).astype(np.int32)
    targets = targets if targets.drawn is not None else targets.drawn_for(users)
    is_one_relevant = targets.ranking.one_relevant
    sizes: list[NDArray[Any]] = []
    relevant: list[NDArray[Any]] = []
    block = max(1, _CELLS // max(train.n_items, 1))
    for start in range(0, len(users), block):
        part = users[start : start + block]
        if is_one_relevant:
            rows, items = targets.relevant_cells(part)
            counts = targets.sizes(part[rows], items), np.ones(len(rows))
        else:
            counts = _sizes(targets, part, level)
        sizes.append(counts[0])
        relevant.append(counts[1])
    candidates = int(np.count_nonzero(test.item_counts)) if targets.ranking.candidates == "test" else train.n_items
    positive = sum(int(np.count_nonzero(part.values >= level)) for part in (train, test))
    return Density(
        sizes=np.concatenate(sizes).astype(np.int64) if sizes else np.zeros(0, dtype=np.int64),
        relevant=np.concatenate(relevant).astype(np.int64) if relevant else np.zeros(0, dtype=np.int64),
        n_users=len(users),
        n_candidates=candidates,
        n_ratings=len(train) + len(test),
        n_test=len(test),
        n_positive=positive,
        one_relevant=is_one_relevant,
        threshold=level,
    )


def _sizes(targets: Targets, users: NDArray[Any], level: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return |T_u| and |T_u ∩ PR_test(u)| of users with one list each."""
    test = targets.test
    assert test is not None
    allowed = targets.allowed(users)
    rows = np.repeat(np.arange(len(users)), test.user_counts[users])
    places = np.concatenate([np.arange(test.indptr[user], test.indptr[user + 1]) for user in users])
    liked = (test.values[places] >= level) & allowed[rows, test.items[places]]
    return allowed.sum(axis=1), np.bincount(rows[liked], minlength=len(users))
