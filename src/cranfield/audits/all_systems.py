"""Averages that look at all systems at once: what they make of the values of one measurement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.data.vocabulary import Vocabulary
from cranfield.measures.averaging import Averaging
from cranfield.measures.scores import Scores

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rescaled:
    """What an average of all systems makes of their values.

    Parameters
    ----------
    values
        Systems × lists, NaN where a list does not count for a system.
    whole
        For each system its one value, where the average has no value by list (TRisk, GeoRisk); else None.
    lower_is_better
        Whether a smaller value is better.
    """

    values: Floats
    whole: Floats | None
    lower_is_better: bool


def rescaled(
    averaging: Averaging,
    systems: tuple[str, ...],
    values: Floats,
    covered: NDArray[np.bool_],
    *,
    lower_is_better: bool,
    zero_if_undefined: bool,
) -> Rescaled:
    """Return the values on the scale of an average that looks at all systems at once.

    The TRisk of a system that never differs from the baseline, as the baseline itself, is 0: there is nothing to win
    or to lose. Where the average is undefined for another system, no universe can be made of it.

    Parameters
    ----------
    averaging
        The average, and what becomes of undefined values and of users without a list.
    systems
        Their names, of which the baseline is one.
    values
        Systems × lists, NaN where the metric is undefined.
    covered
        Systems × lists: whether the system gives a list.
    """
    n_lists = values.shape[1]
    scores = Scores(
        systems,
        ("value",),
        values[:, None],
        covered,
        np.arange(n_lists, dtype=np.int32),
        Vocabulary.of(np.arange(n_lists)),
        np.ones(n_lists, dtype=np.int64),
        np.ones(n_lists, dtype=np.int64),
        (lower_is_better,),
        zero_if_undefined=(zero_if_undefined,),
    )
    on_scale = averaging.taken_of(scores)
    if on_scale.overall is None:
        return Rescaled(on_scale.values[:, 0], None, on_scale.lower_is_better[0])
    whole = on_scale.overall[:, 0].copy()
    base = dict(averaging.kind.spelling.parameters).get("baseline")
    if base is not None:
        differs = values != values[scores.system(str(base))]
        whole[~(differs & ~np.isnan(values)).any(axis=1)] = 0.0
    if np.isnan(whole).any():
        undefined = systems[int(np.flatnonzero(np.isnan(whole))[0])]
        raise SettingError(f"the average {averaging.kind} is undefined for {undefined}")
    return Rescaled(on_scale.values[:, 0], whole, on_scale.lower_is_better[0])
