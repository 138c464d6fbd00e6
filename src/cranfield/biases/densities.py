"""How dense relevance is in target sets: ρ, σ, δ and t (Bellogín, Castells and Cantador 2017, Table 2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._decisions import takes_decisions
from cranfield._errors import SettingError
from cranfield._figures import histogram
from cranfield._result import Figures, Result
from cranfield._table import Table
from cranfield.data import AUTO, Relevance
from cranfield.facts import Fact
from cranfield.facts import bias as bias_facts
from cranfield.judgments import Judged
from cranfield.rankings import Ranking, RankingOptions, Run, Targets
from cranfield.splits import Split

_CELLS = 1 << 24  # maximum number of cells (users × items) per block
_MOST_ROUNDS, _CLOSE, _TINY = 1_000, 1e-7, 1e-300  # of scaling odds: at most, until a changes by less, the least sum


@dataclass(frozen=True, eq=False)
class Density(Result):
    r"""The share of relevant items in target sets, the reference for any precision.

    .. math::
        \rho_u = |T_u \cap PR_{test}(u)| / |T_u|, \quad \rho = avg_u\,\rho_u, \quad 1/t = avg_u(1/|T_u|), \quad
        \sigma = |R_{test}| / |R|, \quad \delta = |PR| / (t\,|U|)
    """

    # \|T_u\| and the number of relevant items in it, one entry per list: one list per test user, or one per relevant
    # test rating in the one-relevant design.
    sizes: NDArray[np.int64]
    relevant: NDArray[np.int64]
    n_users: int  # \|U\|: the users with a test rating
    n_candidates: int  # \|C\|: the items that can be targets of any user
    # \|R\|, \|R_test\| and \|PR\|: all ratings, the test ratings, and all ratings of at least the threshold.
    n_ratings: int
    n_test: int
    n_positive: int
    one_relevant: bool  # whether a list has a single relevant item (1R)
    threshold: float  # the lowest relevant rating

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

    def facts(self) -> list[Fact]:
        """Return the precision of a random ranking, measured and predicted."""
        return [bias_facts.RandomPrecision(self.rho, self.predicted_random, self.t)]

    def frame(self) -> pl.DataFrame:
        """Return one row per quantity: ``quantity, value``."""
        values = self.as_dict()
        return pl.DataFrame({"quantity": list(values), "value": list(values.values())})

    @property
    def figures(self) -> Figures:
        """``lists``: the share of relevant items among the targets of each list."""
        return {"lists": lambda density, **options: histogram(density.rho_of_lists, "ρ of a list", "lists", **options)}

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
    counts: list[tuple[NDArray[Any], NDArray[Any]]] = [(np.zeros(0), np.zeros(0))]
    block = max(1, _CELLS // max(train.n_items, 1))
    for start in range(0, len(users), block):
        part = users[start : start + block]
        if is_one_relevant:
            rows, items = targets.relevant_cells(part)
            counts.append((targets.sizes(part[rows], items), np.ones(len(rows))))
        else:
            counts.append(_sizes(targets, part, level))
    sizes, relevant = (np.concatenate(parts).astype(np.int64) for parts in zip(*counts))
    candidates = int(np.count_nonzero(test.item_counts)) if targets.ranking.candidates == "test" else train.n_items
    positive = sum(int(np.count_nonzero(part.values >= level)) for part in (train, test))
    return Density(
        sizes=sizes,
        relevant=relevant,
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


@dataclass(frozen=True)
class ExpectedPrecision:
    """The predicted precision of a non-personalised ranking, and why a measured value may differ.

    The expected P@n is from ``low`` to ``high``: these are equal in AR, where the formula is an equation, and the two
    bounds in 1R. ``departures`` are the assumptions of the formula that do not hold here.
    """

    low: float
    high: float
    equation: str
    departures: tuple[Fact, ...] = ()


def expected_precision(
    run: Run, split: Split, density: Density, n: int = 10, *, uniform_test: bool = False, unseen: bool = False
) -> ExpectedPrecision:
    r"""Return the expected P@n of a non-personalised ranking.

    In AR, equation (3), and its form for uniform test items (section 6.2, candidates are the test items):

    .. math::
        E[P_s@n] = \frac{\sigma |C|}{n\,t\,|U|} \sum_{k=1}^{n} avg_u |PR(i_k^{u,s})|, \qquad
        E[P_s@n] = \frac{\sigma |R|}{n\,t\,|U|} \sum_{k=1}^{n} avg_u \frac{|PR(i_k^{u,s})|}{|R(i_k^{u,s})|}

    In 1R the sums bound it: over n ranks from below and over m_u = n + |PR_test(u)| − 1 ranks from above, times
    \|C\|/(n t \|PR\|), or \|R\|/(n t \|PR\|) for uniform test items.

    Equation (3) leaves out that an item of a list is not in the user's training ratings, and so more likely to be in
    the test set. With ``unseen`` it is conditioned on this: if u has rated i with the odds :math:`o_{ui}`, then

    .. math::
        E[P_s@n] = \frac{1}{n} \sum_{k=1}^{n} avg_u \frac{|PR(i_k^{u,s})|}{|R(i_k^{u,s})|}
        \frac{\sigma\,o_{u i_k}}{1 + \sigma\,o_{u i_k}}, \qquad o_{ui} = a_u b_i

    where a and b are such that every user and every item has the expected number of ratings that it has.

    Parameters
    ----------
    run
        The ranked lists of the system: i_k^{u,s} is the k-th item of the list of u. In 1R these are also lists of all
        targets, at least m_u long.
    split
        The split: PR(i) and R(i) are counted in training and test ratings together.
    density
        ρ, σ, δ and t of the targets: see `density`.
    n
        The cut-off.
    uniform_test
        Whether the test ratings are uniform over items, as in `splits.uniform_test`.
    unseen
        Whether to condition on items not being in training, for lists of all relevant items without training items.
    """
    n = check.whole("n", n)
    if unseen and (uniform_test or density.one_relevant):
        raise SettingError("unseen=True is for lists of all relevant items of a random split; leave it out")
    if run.one_relevant:
        raise SettingError("a one-relevant run keeps no lists; give the lists of all targets of the same system")
    run.refuse_gaps("the expected precision")
    parts = (split.train, split.test)
    items, values = (np.concatenate(column) for column in zip(*((part.items, part.values) for part in parts)))
    rated, liked = (
        np.bincount(own, minlength=split.train.n_items).astype(np.float64)
        for own in (items, items[values >= density.threshold])
    )
    worth = np.divide(liked, rated, out=np.zeros(len(rated)), where=rated > 0) if uniform_test else liked
    users = np.flatnonzero(split.test.user_counts)
    places = np.searchsorted(run.users, users)
    served = (places < len(run.users)) & (run.users[np.minimum(places, len(run.users) - 1)] == users)
    places = places[served]
    if unseen:
        shares = np.divide(liked, rated, out=np.zeros(len(rated)), where=rated > 0)
        value = _unseen_precision(run, split, places, shares, density.sigma, n)
        return ExpectedPrecision(value, value, "equation (3), given that items are not in training")
    factor = density.n_ratings if uniform_test else density.n_candidates
    name = "uniform-test form of equation (3)" if uniform_test else "equation (3)"
    if not density.one_relevant:
        total = _mean_sum(run, places, worth, np.full(len(places), n))
        value = density.sigma * factor / (n * density.t * density.n_users) * total
        return ExpectedPrecision(value, value, name, _departures(run, split, density, n))
    liked_by = split.test.users[split.test.values >= density.threshold]
    positive = np.bincount(liked_by, minlength=split.test.n_users)[run.users[places]]
    scale = factor / (n * density.t * density.n_positive)
    low = scale * _mean_sum(run, places, worth, np.full(len(places), n))
    high = scale * _mean_sum(run, places, worth, np.maximum(n + positive - 1, n))
    return ExpectedPrecision(low, high, f"bounds of 1R from the {name}", _departures(run, split, density, n))


def _unseen_precision(
    run: Run, split: Split, places: NDArray[np.int64], shares: NDArray[np.float64], sigma: float, n: int
) -> float:
    """Return the mean precision of lists whose items are not in training; ``shares`` are |PR(i)| / |R(i)|."""
    counts = [split.train.user_counts + split.test.user_counts, split.train.item_counts + split.test.item_counts]
    of_user, of_item = (weights[counted] for weights, counted in zip(odds_of_margins(*counts), counts))
    rows = np.repeat(np.arange(len(run)), np.diff(run.indptr))
    inside = (run.entry_ranks <= n) & np.isin(rows, places)
    odds = sigma * of_user[run.users[rows[inside]]] * of_item[run.items[inside]]
    return float((shares[run.items[inside]] * odds / (1 + odds)).sum() / (n * max(len(places), 1)))


def odds_of_margins(users: NDArray[Any], items: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""Return a and b by number of ratings, so that the odds a b of a rating give each user and item this number.

    .. math:: \sum_i \frac{a_u b_i}{1 + a_u b_i} = |R(u)|, \qquad \sum_u \frac{a_u b_i}{1 + a_u b_i} = |R(i)|

    This is the Rasch model, which is solved by scaling a and b in turn; all users (items) with as many ratings have the
    same a (b), so the arrays are indexed by number of ratings.
    """
    (n, users_with), (m, items_with) = (np.unique(counts, return_counts=True) for counts in (users, items))
    scale = np.sqrt(max(float(n @ users_with), 1.0))
    a, b = n / scale, m / scale
    for _ in range(_MOST_ROUNDS):
        before = a
        a = n / np.maximum((b / (1 + a[:, None] * b)) @ items_with, _TINY)
        b = m / np.maximum((a[:, None] / (1 + a[:, None] * b)).T @ users_with, _TINY)
        if np.abs(a - before).max(initial=0.0) <= _CLOSE * a.max(initial=0.0):
            break
    of_users, of_items = np.zeros(int(n.max(initial=0)) + 1), np.zeros(int(m.max(initial=0)) + 1)
    of_users[n], of_items[m] = a, b
    return of_users, of_items


def _mean_sum(run: Run, places: NDArray[np.int64], worth: NDArray[np.float64], depth: NDArray[np.int64]) -> float:
    """Return the mean over lists of the summed worth of the first ``depth`` items of each."""
    sums = np.append(0.0, np.cumsum(worth[run.items]))
    starts = run.indptr[places]
    ends = np.minimum(run.indptr[places + 1], starts + depth)
    return float((sums[ends] - sums[starts]).mean()) if len(places) else float("nan")


def _departures(run: Run, split: Split, density: Density, n: int) -> tuple[Fact, ...]:
    """Return the assumptions of the formula that do not hold."""
    reasons = list[Fact]()
    sizes = density.sizes
    if len(sizes) and sizes.min() != sizes.max():
        reasons.append(bias_facts.SizesDiffer(int(sizes.min()), int(sizes.max())))
    first = {tuple(run.items[start : start + n].tolist()) for start in run.indptr[:-1][:1000]}
    if len(first) > 1:
        reasons.append(bias_facts.PopularityRemark("lists differ"))
    method = split.step.action.removeprefix("split.")
    if method not in ("random", "k_fold", "uniform_test"):
        reasons.append(bias_facts.SplitMayNotDraw(method))
    return tuple(reasons)


def one_relevant_bounds(judged: Judged, n: int = 10) -> tuple[float, float]:
    r"""Return the bounds of the 1R precision that follow from lists of all relevant items: the lemma, equation (2).

    .. math::
        \frac{|U| P_s@n}{|PR_{test}|} \le 1RP_s@n \le \frac{\sum_u m_u P_s^u@m_u}{n |PR_{test}|},
        \qquad m_u = n + |PR_{test}(u)| - 1

    They hold if both designs have the same non-relevant items N_u for all lists of a user.

    Parameters
    ----------
    judged
        The lists over N_u ∪ PR_test(u), at least m_u long, judged by the test set.
    n
        The cut-off.
    """
    n = check.whole("n", n)
    total = int(judged.n_relevant.sum())
    if total == 0:
        raise SettingError("no list has a relevant item, so there are no 1R lists; lower the threshold")
    reach = (n + judged.n_relevant - 1)[judged.lists]
    low = np.count_nonzero(judged.relevant & (judged.ranks <= n))
    high = np.count_nonzero(judged.relevant & (judged.ranks <= reach))
    return low / (n * total), high / (n * total)
