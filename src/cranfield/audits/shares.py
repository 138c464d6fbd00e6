"""How often each system leads, and its ranks.

A share depends on the menu, that is, on the opened options and their weights. It is not a probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.audits.joint import JointTest, Scope
from cranfield.audits.leads import Floats, Leads, p_of
from cranfield.audits.resampling import Resampled, interval
from cranfield.audits.terms import Terms

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""The quantiles of d_z to show; the first and the last are its range."""


@dataclass(frozen=True)
class LeadShare:
    """A share of the cells or of the distinct universes.

    Parameters
    ----------
    over
        ``"cells"`` (with the weights of options) or ``"universes"`` (each distinct one counts once).
    what
        ``"leads"``, ``"trails"``, ``"equal"``, ``"leads significantly"``, ``"trails significantly"`` (the first system
        of the pair), or ``"significant"`` (in either direction).
    share, lower, upper
        The share, and its 95 % interval over resampled users (`interval`).
    chance
        Under the null hypothesis of the joint test, the larger of the two systems' shares is at least this in 5 % of
        the cases. None for ``"equal"``.
    """

    over: str
    what: str
    share: float
    lower: float
    upper: float
    chance: float | None


_CHANCE = {
    "leads": "leads",
    "trails": "leads",
    "leads significantly": "significantly",
    "trails significantly": "significantly",
    "significant": "either",
}


def lead_shares(
    leads: Leads,
    resamples: Resampled,
    terms: Terms,
    scope: Scope,
    tested: Scope | None,
    alpha: float,
    joint: JointTest | None,
) -> list[LeadShare]:
    """Return all shares of one pair of systems in a scope, with what chance gives.

    Intervals and chance are over the ``tested`` universes; without any, intervals are NaN and chance is None.
    """
    seen = _events(leads.lead[scope.universes], leads.significant[scope.universes])
    drawn = {}
    if tested is not None:
        own = tested.universes
        drawn = _events(resamples.sign[:, own], p_of(resamples.d_z[:, own], terms.users[own]) < alpha)
    shares = []
    for over in ("cells", "universes"):
        weights = _weights(scope, over)
        for what, event in seen.items():
            share = float(event @ weights)
            ends = (np.nan, np.nan) if tested is None else interval(share, drawn[what] @ _weights(tested, over))
            chance = joint.often[f"{_CHANCE[what]} of {over}"] if joint is not None and what in _CHANCE else None
            shares.append(LeadShare(over, what, share, *ends, chance))
    return shares


def _weights(scope: Scope, over: str) -> Floats:
    return scope.weights if over == "cells" else np.full(len(scope.universes), 1 / len(scope.universes))


def _events(lead: NDArray[np.int8], significant: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    return {
        "leads": lead > 0,
        "trails": lead < 0,
        "equal": lead == 0,
        "leads significantly": (lead > 0) & significant,
        "trails significantly": (lead < 0) & significant,
        "significant": significant & (lead != 0),
    }


def effect_quantiles(d_z: Floats, scope: Scope) -> dict[float, float]:
    """Return the quantiles of d_z over the cells of a scope, with their weights."""
    own = d_z[scope.universes]
    order = np.argsort(own, kind="stable")
    reached = np.cumsum(scope.weights[order])
    places = np.minimum(np.searchsorted(reached, np.array(QUANTILES) - 1e-12), len(own) - 1)
    return dict(zip(QUANTILES, own[order][places].tolist()))


def ranks_of(averages: Floats) -> NDArray[np.int64]:
    """Return the rank of each system (first axis): 1 plus the number of better systems; equal systems share a rank.

    Examples
    --------
    >>> ranks_of(np.array([[0.3], [0.5], [0.3]])).ravel().tolist()
    [2, 1, 2]
    """
    ranks = np.ones(averages.shape, dtype=np.int64)
    for place, own in enumerate(averages):
        ranks[place] += (averages > own).sum(axis=0)
    return ranks


def rank_shares(
    systems: Sequence[str], averages: Floats, resampled_averages: Floats, scope: Scope
) -> list[dict[str, Any]]:
    """Return one row per system and rank: the share of the cells, with its interval over resampled users.

    ``averages`` is systems × universes and ``resampled_averages`` systems × resamples × universes; larger is better.
    """
    ranks = ranks_of(averages[:, scope.universes])
    drawn = ranks_of(resampled_averages[..., scope.universes])
    rows = []
    for place, system in enumerate(systems):
        for rank in range(1, len(systems) + 1):
            share = float((ranks[place] == rank) @ scope.weights)
            low, high = interval(share, (drawn[place] == rank) @ scope.weights)
            rows.append({"system": system, "rank": rank, "share": share, "lower": low, "upper": high})
    return rows
