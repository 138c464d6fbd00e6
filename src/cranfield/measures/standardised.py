"""Standardised scores: each list's values relative to those of reference systems on the same list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._registry import Spelling
from cranfield.measures.averages import AVERAGES, Average, mean_of
from cranfield.measures.averaging import Averaging
from cranfield.measures.risks import ROUNDING
from cranfield.measures.scores import Scores
from cranfield.metrics import power_of_two

Form = Literal["z", "normal", "linear", "empirical"]


def standardise(scores: Scores, *, reference: Sequence[str] | None = None, form: Form = "normal") -> Scores:
    """Return the scores with every value standardised over the reference systems on the same list.

    With mean μ_j and standard deviation σ_j (n − 1) of the reference systems on list j, z = (x − μ_j)/σ_j, 0 if σ_j is
    0 up to rounding (Webber et al. 2008). ``normal`` gives Φ(z), ``linear`` min(1, max(0, 0.15 z + 0.5)) (Sakai 2016),
    ``empirical`` the share of reference values that are at most x (Urbano et al. 2019). Undefined values stay
    undefined, and are left out of averages.

    Parameters
    ----------
    reference
        The systems to standardise against; all of them by default.
    """
    if form not in ("z", "normal", "linear", "empirical"):
        raise SettingError(f"form={form!r} is not known; write z, normal, linear or empirical")
    chosen = [scores.system(name) for name in (scores.systems if reference is None else reference)]
    if len(chosen) < 2 and form != "empirical":
        raise SettingError("standardising needs at least two reference systems; name more of them")
    against = scores.values[chosen]
    values = _empirical(scores.values, against) if form == "empirical" else _z(scores.values, against)
    if form == "normal":
        from scipy.special import ndtr

        values = ndtr(values)
    elif form == "linear":
        values = np.clip(0.15 * values + 0.5, 0.0, 1.0)
    settings = {**scores.step.settings, "standardised": form, "reference": [scores.systems[s] for s in chosen]}
    step = Step(scores.step.action, settings, scores.step.effect)
    # Bounds are those of the original values. A standardised 0 is an average or the worst value, so undefined is not 0.
    nowhere_zero = (False,) * len(scores.metrics)
    return replace(scores, values=np.asarray(values), bounds=None, zero_if_undefined=nowhere_zero, step=step)


def _z(values: NDArray[np.float64], against: NDArray[np.float64]) -> NDArray[np.float64]:
    # z does not change if all values of a list are divided by a power of two.
    power = power_of_two(np.abs(np.concatenate([values, against])).max(axis=0))
    values, against = np.ldexp(values, -power), np.ldexp(against, -power)
    spread = against.std(axis=0, ddof=1)
    away = values - against.mean(axis=0)
    differ = spread > ROUNDING * np.abs(against).max(axis=0)
    return np.divide(away, spread, out=np.where(np.isnan(away), np.nan, 0.0), where=differ)


def _empirical(values: NDArray[np.float64], against: NDArray[np.float64]) -> NDArray[np.float64]:
    share = np.stack([(against <= row).mean(axis=0) for row in values])
    return np.where(np.isnan(values), np.nan, share)


@AVERAGES.register("standardised")
def _standardised(spelling: Spelling, form: Form = "normal") -> Average:
    """Mean of standardised values: the value of each list relative to all systems; see `standardise`."""

    def standing(scores: Scores, averaging: Averaging) -> Scores:
        places = range(len(scores.metrics))
        zero = [scores.counts_zero(m, averaging.undefined) for m in places]
        values = np.where(np.array(zero)[:, None], np.nan_to_num(scores.values), scores.values)
        return standardise(replace(scores, values=values), form=form)

    return mean_of(spelling, standing)
