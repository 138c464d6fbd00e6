"""Condensed lists of an audit: ranked anew where systems are trained, checked where lists are given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._numbers import percent_text
from cranfield.audits.setups import Measurement
from cranfield.audits.universes import MeasuredLists, SetupLists
from cranfield.measures.definition import Metric
from cranfield.measures.judged import Judged


@dataclass(frozen=True, eq=False)
class GivenCondensed(SetupLists):
    """Condensed lists, some of which are given and may be too short.

    A given list was cut somewhere, and what stands below the cut is not known. Condensed, it can be measured at a
    cut-off n only if n items with a test rating stand in it, or every one that the system could score.

    Parameters
    ----------
    given
        For each system whether its lists are given.
    """

    given: Sequence[bool] = field(default=())

    def measured(self, measurement: Measurement) -> MeasuredLists:
        """Measure the lists, or say for how many users they are too short."""
        cutoff = Metric.of(measurement.metric).cutoff
        for place, given in enumerate(self.given):
            if not given:
                continue
            short = np.concatenate([short_lists(part[place], cutoff) for part in self.parts])
            if short.any():
                ranked = self.parts[0][place].ranked
                name = "a system" if ranked is None else ranked.name
                depth = "whole lists" if cutoff is None else f"cut-off {cutoff}"
                raise SettingError(
                    f"the lists of {name} are too short to be condensed: at {depth} items are missing for "
                    f"{percent_text(float(short.mean()))} of the users; give longer lists"
                )
        return super().measured(measurement)


def condensed_lists(lists: SetupLists, given: Sequence[bool]) -> SetupLists:
    """Return lists without the items that have no test rating."""
    parts = [[judged.condensed() for judged in part] for part in lists.parts]
    return GivenCondensed(parts, lists.users, lists.length, given)


def short_lists(judged: Judged, cutoff: int | None) -> NDArray[np.bool_]:
    """Tell which condensed lists neither reach a cut-off nor hold every test item that can be scored.

    A test item can be scored if it has a training rating; where the training ratings are not known, all of them can.
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
