"""The limits of given lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._numbers import percent_text
from cranfield.audits.setups import Measurement
from cranfield.audits.universes import MeasuredLists, SetupLists
from cranfield.judgments import Judged
from cranfield.metrics import Metric


@dataclass(frozen=True, eq=False)
class GivenLists(SetupLists):
    """The lists of a set-up, some of which are given and may be too short.

    A given list was cut somewhere, and the items below the cut are not known. A system can be measured at a cut-off n
    only if its longest list has n items. If lists are condensed, each of them must contain n items with a test rating,
    or all that the system could score. Users without a list are ignored.

    Parameters
    ----------
    given
        For each system, whether its lists are given.
    served
        Parts × systems × users: whether there is a list, even if it is empty after condensing.
    """

    given: Sequence[bool] = field(default=())
    served: Sequence[Sequence[NDArray[np.bool_]]] = field(default=())

    def measured(self, measurement: Measurement) -> MeasuredLists:
        """Measure the lists, or raise an error if some are too short."""
        cutoff = Metric.of(measurement.metric).cutoff
        for place, given in enumerate(self.given):
            if given:
                served = np.concatenate([part[place] for part in self.served])
                _check([part[place] for part in self.parts], served, cutoff)
        return super().measured(measurement)


def given_lists(lists: SetupLists, given: Sequence[bool], *, condensed: bool) -> SetupLists:
    """Return the lists of a set-up, condensed or not, with a check of those that are given."""
    parts = [[judged.condensed() for judged in part] for part in lists.parts] if condensed else lists.parts
    served = [[judged.lengths > 0 for judged in part] for part in lists.parts]
    return GivenLists(parts, lists.users, lists.length, lists.windows, given, served)


def _check(parts: Sequence[Judged], served: NDArray[np.bool_], cutoff: int | None) -> None:
    """Raise an error if the lists of a system are too short for a cut-off."""
    ranked = parts[0].ranked
    name = "a system" if ranked is None else ranked.name
    longest = max(judged.depth for judged in parts)
    if not parts[0].is_condensed:
        if cutoff is not None and cutoff > longest:
            raise SettingError(
                f"the longest list of {name} has {longest} items, so a cut-off of {cutoff} cannot be shown; give "
                "longer lists"
            )
        return
    short = served & np.concatenate([short_lists(judged, cutoff) for judged in parts])
    if short.any():
        depth = "whole lists" if cutoff is None else f"cut-off {cutoff}"
        raise SettingError(
            f"the lists of {name} are too short to be condensed: at {depth} items are missing for "
            f"{percent_text(float(short.mean()), ' %')} of the users; give longer lists"
        )


def short_lists(judged: Judged, cutoff: int | None) -> NDArray[np.bool_]:
    """Return which condensed lists neither reach a cut-off nor contain every test item that can be scored.

    A test item can be scored if it has a training rating; if the training ratings are not known, all of them can.
    """
    judgments, train = judged.judgments, judged.context.train
    wanted = judgments.n_judged
    if train is not None:
        trained = np.zeros(len(judgments.item_ids), dtype=np.bool_)
        known = train.item_ids.codes(judgments.item_ids.ids(np.arange(len(judgments.item_ids))))
        trained[known >= 0] = train.item_counts[known[known >= 0]] > 0
        wanted = np.bincount(judgments.lists, trained[judgments.items], judgments.n_lists).astype(np.int64)
    enough = wanted if cutoff is None else np.minimum(wanted, cutoff)
    short: NDArray[np.bool_] = judged.lengths < enough
    return short
