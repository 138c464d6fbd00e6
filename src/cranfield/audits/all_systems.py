"""Averages that depend on all systems at once, applied to the values of one measurement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield.measures import Averaging, Scores
from cranfield.tables import Vocabulary

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rescaled:
    """The values on the scale of an average that depends on all systems.

    Parameters
    ----------
    values
        Systems × lists, NaN where a list does not count for a system.
    whole
        One value for each system if the average has no values by list (TRisk, GeoRisk), otherwise None.
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
    """Return the values on the scale of an average that depends on all systems at once.

    The TRisk of a system that never differs from the baseline, such as the baseline itself, is 0: there is nothing to
    win or to lose. If the average is undefined for another system, the universe cannot be computed.

    Parameters
    ----------
    averaging
        The average, and how undefined values and users without a list are treated.
    systems
        The names of the systems, including the baseline.
    values
        Systems × lists, NaN where the metric is undefined.
    covered
        Systems × lists: whether the system provides a list.
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
