"""The expected precision of non-personalised rankings, as derived by Bellogín, Castells and Cantador (2017).

The formulas hold over random splits, for a ranking that does not depend on the user or the split and for target sets
from which nothing was removed. In other cases they are the printed predictions, to be compared with measured values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield.biases.densities import Density
from cranfield.data import Ratings
from cranfield.judgments import Judged
from cranfield.rankings import Run
from cranfield.splits import Split


@dataclass(frozen=True)
class ExpectedPrecision:
    """The predicted precision of a non-personalised ranking, and why a measured value may differ.

    Parameters
    ----------
    low, high
        The expected P@n: equal in AR, where the formula is an equation, and the two bounds in 1R.
    equation
        The name of the formula.
    departures
        The assumptions of the formula that do not hold here, in words; empty if all hold.
    """

    low: float
    high: float
    equation: str
    departures: tuple[str, ...] = ()


def expected_precision(
    run: Run, split: Split, density: Density, n: int = 10, *, uniform_test: bool = False
) -> ExpectedPrecision:
    r"""Return the expected P@n of a non-personalised ranking.

    In AR, equation (3), and its form for uniform test items (section 6.2, candidates are the test items):

    .. math::
        E[P_s@n] = \frac{\sigma |C|}{n\,t\,|U|} \sum_{k=1}^{n} avg_u |PR(i_k^{u,s})|, \qquad
        E[P_s@n] = \frac{\sigma |R|}{n\,t\,|U|} \sum_{k=1}^{n} avg_u \frac{|PR(i_k^{u,s})|}{|R(i_k^{u,s})|}

    In 1R the sums bound it: over n ranks from below and over m_u = n + |PR_test(u)| − 1 ranks from above, times
    \|C\|/(n t \|PR\|), or \|R\|/(n t \|PR\|) for uniform test items.

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
    """
    n = check.whole("n", n)
    if run.one_relevant:
        raise SettingError("a one-relevant run keeps no lists; give the lists of all targets of the same system")
    run.refuse_gaps("the expected precision")
    rated, liked = _counts(split.train, split.test, None), _counts(split.train, split.test, density.threshold)
    worth = np.divide(liked, rated, out=np.zeros(len(rated)), where=rated > 0) if uniform_test else liked
    users = np.flatnonzero(split.test.user_counts)
    places = np.searchsorted(run.users, users)
    served = (places < len(run.users)) & (run.users[np.minimum(places, len(run.users) - 1)] == users)
    places = places[served]
    factor = density.n_ratings if uniform_test else density.n_candidates
    name = "uniform-test form of equation (3)" if uniform_test else "equation (3)"
    if not density.one_relevant:
        total = _mean_sum(run, places, worth, np.full(len(places), n))
        value = density.sigma * factor / (n * density.t * density.n_users) * total
        return ExpectedPrecision(value, value, name, _departures(run, split, density, n))
    positive = np.bincount(split.test.users[split.test.values >= density.threshold], minlength=split.test.n_users)[
        run.users[places]
    ]
    scale = factor / (n * density.t * density.n_positive)
    low = scale * _mean_sum(run, places, worth, np.full(len(places), n))
    high = scale * _mean_sum(run, places, worth, np.maximum(n + positive - 1, n))
    return ExpectedPrecision(low, high, f"bounds of 1R from the {name}", _departures(run, split, density, n))


def _counts(train: Ratings, test: Ratings, level: float | None) -> NDArray[np.float64]:
    """Return the number of ratings of each item in both parts; with ``level``, only ratings of at least this."""
    counts = np.zeros(train.n_items)
    for part in (train, test):
        counts += np.bincount(
            part.items if level is None else part.items[part.values >= level], minlength=train.n_items
        )
    return counts


def _mean_sum(run: Run, places: NDArray[np.int64], worth: NDArray[np.float64], depth: NDArray[np.int64]) -> float:
    """Return the mean over lists of the summed worth of the first ``depth`` items of each."""
    sums = np.append(0.0, np.cumsum(worth[run.items]))
    starts = run.indptr[places]
    ends = np.minimum(run.indptr[places + 1], starts + depth)
    return float((sums[ends] - sums[starts]).mean()) if len(places) else float("nan")


def _departures(run: Run, split: Split, density: Density, n: int) -> tuple[str, ...]:
    """Return the assumptions of the formula that do not hold."""
    reasons = []
    sizes = density.sizes
    if len(sizes) and sizes.min() != sizes.max():
        reasons.append(
            f"target sets differ in size, {sizes.min():,} to {sizes.max():,} items: training items are removed, so a "
            "remaining item is more likely to be a test item than σ|PR(i)|/|U| says, especially for active users"
        )
    first = {tuple(run.items[start : start + n].tolist()) for start in run.indptr[:-1][:1000]}
    if len(first) > 1:
        reasons.append("the lists differ between users, and the formula is for a ranking that is the same for all")
    method = split.step.action.removeprefix("split.")
    if method not in ("random", "k_fold", "uniform_test"):
        spelled = "the given split" if method == "predefined" else f"the split ({method})"
        reasons.append(f"{spelled} may not draw test ratings at random")
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
