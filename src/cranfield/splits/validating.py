"""A validation part that is made like the test part: by the same method, from the training part alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cranfield._numbers import count_text
from cranfield._record import Step
from cranfield._registry import parse
from cranfield.data import Ratings
from cranfield.splits.split import LIKE_TEST, Split, registry

_TRAIN = 0.8
"""The share of training that stays in training if the method goes by a share."""

# Methods with another one for the validation part. Folds are drawn like `random`. In a window, the newest ratings
# before the cut are the nearest to its test part. Methods that even out the items cannot do so twice.
_INSTEAD = {"k_fold": "random", "rolling": "temporal", "train_per_item": "random", "uniform_test": "random"}
_BY_SHARE = ("random", "per_user", "temporal", "percentiles", "tail_test")


def for_validation(data: Split | Ratings, method: str = LIKE_TEST, *, seed: int = 0, windows: int = 1) -> list[Split]:
    """Return splits of a training part whose test part is a validation part; the test part of ``data`` is not used.

    Parameters
    ----------
    data
        A split, whose own validation part is the first one if it has any; or training ratings.
    method
        ``"like the test"``: by the method and the rules that made the test part of the split. ``temporal`` sets the
        newest fifth aside, with the same target and the same rules for new users and items; ``per_user`` and
        ``leave_out`` with ``which=last`` the last ones before; methods that hold out users or items, others of them;
        ``random`` and ``k_fold`` a random fifth. It is also a random fifth for bare ratings and for splits whose method
        is not known (``predefined``). Or the spelling of another split, such as ``"random(train=0.8)"``.
    seed
        Seed of the methods that draw.
    windows
        How many, each from the training part of the one before: successive cuts, if the method goes by time.

    Examples
    --------
    >>> from cranfield.splits import temporal
    >>> split = temporal(Ratings.of(range(100), range(100), times=range(100)), train=0.8)
    >>> for inner in for_validation(split, windows=2):
    ...     print(inner)
    Split(temporal: train 64, test 16)
    Split(temporal: train 51, test 13)
    """
    train, groups = (data, None) if isinstance(data, Ratings) else (data.train, data.item_groups)
    splits: list[Split] = []
    if isinstance(data, Split) and data.validation is not None:
        splits.append(Split(train, data.validation, data.step, item_groups=groups, profiles=data.profiles))
    step = data.step if isinstance(data, Split) else None
    while len(splits) < windows:
        inner = _divided(splits[-1].train if splits else train, step, method, seed)
        splits.append(inner if inner.item_groups is not None else replace(inner, item_groups=groups))
    return splits


def _divided(train: Ratings, step: Step | None, method: str, seed: int) -> Split:
    if method != LIKE_TEST:
        divided = registry.call(method, train, seed=seed)
    else:
        name, settings = _like(step)
        own = {"seed": seed} if "seed" in registry.find(name).parameters else {}
        divided = registry[name](train, **settings, **own)
    # A method of someone else may make folds.
    split: Split = divided if isinstance(divided, Split) else divided[0]
    return split


def _like(step: Step | None) -> tuple[str, dict[str, Any]]:
    """Return the method that makes a validation part like the test part of a step, and its settings."""
    made_by = "random" if step is None else step.action.removeprefix("split.")
    if made_by not in registry:
        return "random", {"train": _TRAIN}
    settings: Mapping[str, Any] = {} if step is None else step.settings
    name = "per_user" if made_by == "k_fold" and settings.get("per_user") else _INSTEAD.get(made_by, made_by)
    known = registry.find(name).parameters
    alike = {
        key: value
        for key, value in settings.items()
        if key in known and value is not None and key not in ("seed", "validation", "at", "train")
    }
    if name in _BY_SHARE:
        alike["train"] = _TRAIN
    if name == "leave_out":
        alike["short"] = "train"  # users with too few further ratings stay in training
    return name, alike


def validation_words(data: Split | Ratings, method: str = LIKE_TEST) -> str:
    """Return which ratings of training are the validation part, in words.

    Examples
    --------
    >>> from cranfield.splits import leave_out
    >>> ratings = Ratings.of([1] * 10 + [2] * 10, [*range(10)] * 2, times=range(20))
    >>> validation_words(ratings), validation_words(ratings, "temporal(train=0.9)")
    ('a random fifth of training', 'the newest 10 % of training')
    >>> validation_words(leave_out(ratings, l=1, which="last"))
    "the last item of each user's training"
    """
    if isinstance(data, Split) and data.validation is not None:
        return "the validation part"
    if method == LIKE_TEST:
        name, settings = _like(data.step if isinstance(data, Split) else None)
    else:
        spelling = parse(method)
        name, settings = spelling.name, dict(spelling.parameters)
    aside = 1 - settings.get("train", _TRAIN)
    share = "fifth" if abs(aside - 0.2) < 1e-9 else f"{100 * aside:g} %"
    last = settings.get("which") == "last"
    if name == "temporal" and "at" not in settings:
        return f"the newest {share} of training"
    if name == "random":
        return f"a random {share} of training"
    if name == "per_user":
        return f"the last {share} of each user's training" if last else f"a random {share} of each user's training"
    if name == "leave_out":
        unit = settings.get("unit", "item")
        number = settings.get("l", 1)
        some = unit if number == 1 else count_text(number, unit)
        return (
            f"the last {some} of each user's training"
            if last
            else f"{count_text(number, unit)} of each user's training"
        )
    if name in ("cold_users", "strong_generalisation"):
        return "other users of training"
    return "other items of training" if name == "cold_items" else f"training divided by {name}"


def follows_training(split: Split) -> bool:
    """Whether every test rating is later than all of training, so that a validation part should be the newest too."""
    train, test = (part.rows().times for part in (split.train, split.test))
    if train is None or test is None or not len(train) or not len(test):
        return False
    return bool(test.min() > train.max())
