"""Calibrations fitted on ratings that a system did not learn from, and the verb `calibrate` for given lists."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from cranfield import _checks as check
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield._streams import stream
from cranfield.data import Ratings, RatingScale
from cranfield.rankings.calibration import CALIBRATIONS, SHARE, Calibration, fitted_calibration
from cranfield.rankings.run import Run
from cranfield.recommenders import Recommender, pair_scores
from cranfield.splits import Split
from cranfield.tables import UNKNOWN


def predicts_ratings(system: Recommender) -> bool | None:
    """Whether the scores of a system are predicted ratings; None if an external system does not say."""
    says: bool | None = getattr(system, "predicts_ratings", None)
    return says


class HeldOut(NamedTuple):
    """Ratings divided for a calibration.

    Systems learn from ``train``, and none of them from ``validation``. ``seen`` is both, which lists do not recommend
    again. ``words`` describe what was held out.
    """

    train: Ratings
    validation: Ratings
    seen: Ratings
    words: str = "the validation part of the split"


def hold_out(data: Split | Ratings, seed: int) -> HeldOut:
    """Divide the ratings into those that systems learn from and those that a calibration is fitted on.

    These are the validation part of a split. Without one, a tenth of the training ratings is drawn at random.
    """
    train, validation = (data, None) if isinstance(data, Ratings) else (data.train, data.validation)
    if validation is not None and len(validation):
        return HeldOut(train, validation, _together(train, validation))
    drawn = stream(seed, "calibration").random(len(train)) < SHARE
    if drawn.all() or not drawn.any():
        raise SettingError(
            f"{len(train):,} training ratings are too few to hold some out for a calibration; give more, or leave "
            "calibration out"
        )
    step = Step("hold out for calibration", {"share": SHARE, "seed": seed}, {"ratings": int(drawn.sum())})
    words = f"{SHARE:.0%} of the training ratings, which no system learned from"
    return HeldOut(train.keep(~drawn, step), train.keep(drawn, step), train, words)


def _together(first: Ratings, second: Ratings) -> Ratings:
    """Return the ratings of two parts over the same vocabularies."""
    columns = [
        np.concatenate([getattr(part, name) for part in (first, second)]) for name in ("users", "items", "values")
    ]
    return Ratings.from_codes(first.user_ids, first.item_ids, *columns, name=first.name, history=first.history)


def calibrate_system(name: str, system: Recommender, held_out: HeldOut, method: str) -> Calibration:
    """Fit the calibration of a system on ratings that it did not learn from.

    Scores of training pairs are too high. A system that predicts ratings keeps its predictions; only the spread of its
    residuals is measured.

    Parameters
    ----------
    name
        The system's name, for messages.
    system
        The system, fitted on ``held_out.train``.
    held_out
        The ratings it learned from, and those held out.
    method
        ``linear`` or ``isotonic``.
    """
    validation = held_out.validation
    scores = pair_scores(name, system, validation.users, validation.items, validation.n_items)
    kind, scale = "own" if predicts_ratings(system) else method, RatingScale.of(held_out.seen.grades)
    try:
        return fitted_calibration(kind, scores, validation.values, scale, held_out.words)
    except SettingError as error:
        raise SettingError(f"{name}: {error}") from None


def calibrate(run: Run, validation_run: Run, validation: Ratings, method: str = "isotonic") -> Run:
    """Return a run with predicted ratings: its scores, calibrated on the lists and ratings of a validation part.

    Parameters
    ----------
    run
        The lists to calibrate, with scores.
    validation_run
        Lists with scores that contain items of the validation part, made by the system of ``run`` if it did not learn
        from these ratings, otherwise by the same system trained without them.
    validation
        The held-out ratings; not the test ratings.
    method
        ``isotonic`` or ``linear``.

    Examples
    --------
    >>> import cranfield as cf
    >>> lists = cf.read_run({"ann": {"x": 12.0, "y": 3.0}}, name="mine")
    >>> held_out = cf.read_run({"bob": {"x": 10.0, "y": 2.0, "z": 6.0}}, name="mine")
    >>> calibrate(lists, held_out, cf.Ratings.of(["bob"] * 3, ["x", "y", "z"], [5, 1, 3])).predictions.tolist()
    [5.0, 1.5]
    """
    method = check.one_of("method", method, tuple(CALIBRATIONS))
    for given in (run, validation_run):
        if given.scores is None or given.made_scores:
            raise SettingError(f"{given.name} has no scores to calibrate; give lists with a column of scores")
    scores, ratings = _met(validation_run, validation)
    scale, held_out = RatingScale.of(validation.grades), "the validation ratings that were given"
    calibration = fitted_calibration(method, scores, ratings, scale, held_out)
    assert run.scores is not None
    history = (*run.history, calibration.step)
    return replace(run, predictions=calibration(run.scores), calibration=calibration, history=history)


def _met(run: Run, ratings: Ratings) -> tuple[Any, Any]:
    """Return the scores and ratings of the rated items in the lists."""
    users = _codes(ratings.user_ids, run.user_ids)[np.repeat(run.users, np.diff(run.indptr))].astype(np.int64)
    items = _codes(ratings.item_ids, run.item_ids)[run.items].astype(np.int64)
    keys = ratings.users.astype(np.int64) * ratings.n_items + ratings.items
    wanted = np.where((users == UNKNOWN) | (items == UNKNOWN), -1, users * ratings.n_items + items)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    rated = keys[place] == wanted
    assert run.scores is not None
    return run.scores[rated], ratings.values[place[rated]]


def _codes(ids: Any, others: Any) -> Any:
    """Return the codes of the ids of another vocabulary."""
    codes = ids.translation(others)
    return np.arange(len(others)) if codes is None else codes
