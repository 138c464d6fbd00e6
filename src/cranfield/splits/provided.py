"""A split made elsewhere: a training set and a test set, brought over one vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np

from cranfield import _checks as check
from cranfield._errors import ImpossibleSplitError
from cranfield._record import Step
from cranfield._streams import stream
from cranfield.data import Ratings, check_ratings, over_one_vocabulary
from cranfield.facts import split as facts
from cranfield.splits.parts import TRAIN, VALIDATION, coins, describe, in_both, validation_share
from cranfield.splits.split import Split


def predefined(
    train: Ratings,
    test: Ratings,
    *,
    validation: Ratings | float | None = None,
    profiles: Ratings | None = None,
    overlap: str = "error",
    seed: int = 0,
) -> Split:
    """Make a split from ratings that are already divided, for example into two files.

    Parameters
    ----------
    train, test
        The parts, each over its own vocabulary. If one has numbers as ids and the other text, both become text.
    validation
        The validation part, or the probability of each training rating to be set aside for one.
    profiles
        The profiles of held-out users, as `strong_generalisation` makes them; none of these users may be in training.
    overlap
        What to do with (user, item) pairs that are in more than one part: ``"error"``, or drop them from all but the
        test part (``"test"``) or the training part (``"train"``); the notes say how many.
    seed
        Seed of the draw of a validation share.

    Examples
    --------
    >>> train = Ratings.of(["ann", "bob"], ["x", "x"], [5, 3])
    >>> test = Ratings.of(["bob", "cid"], ["y", "x"], [4, 4])
    >>> split = predefined(train, test)
    >>> split, split.train.n_users
    (Split(predefined: train 2, test 2), 3)
    """
    overlap = check.one_of("overlap", overlap, ("error", "test", "train"))
    seed = check.whole("seed", seed, at_least=0)
    parts = {"train": train, "test": test}
    if isinstance(validation, Ratings):
        parts["validation"] = validation
    if profiles is not None:
        parts["profiles"] = profiles
    for name, part in parts.items():
        check_ratings(part)
        if len(part) == 0:
            raise ImpossibleSplitError(f"the {name} part has no ratings; give the right file")
    parts = dict(zip(parts, over_one_vocabulary(list(parts.values()))))
    parts, repeated = _disjoint(parts, overlap)
    if profiles is not None:
        learned = int(np.count_nonzero((parts["profiles"].user_counts > 0) & (parts["train"].user_counts > 0)))
        if learned:
            raise ImpossibleSplitError(
                f"{learned:,} users of profiles are in the training part too, so they are not held out; leave profiles "
                "out, or train without them"
            )
    if not isinstance(validation, Ratings) and validation is not None:
        drawn = coins(len(parts["train"]), 1.0, validation_share(validation), stream(seed, "split", "given"))
        parts["validation"] = parts["train"].keep(drawn == VALIDATION)
        parts["train"] = parts["train"].keep(drawn == TRAIN)
    notes = (facts.PairsMoved(repeated, overlap),) if repeated else ()
    settings: dict[str, Any] = {"overlap": overlap}
    if isinstance(validation, Ratings):
        settings["validation"] = "given"
    elif validation is not None:
        settings |= {"validation": validation, "seed": seed}
    step = Step("split.predefined", settings, {"repeated_pairs": repeated}, notes)
    optional = {name: parts.get(name) for name in ("validation", "profiles")}
    return describe(parts["train"], parts["test"], step, **optional)


def _disjoint(parts: dict[str, Ratings], overlap: str) -> tuple[dict[str, Ratings], int]:
    """Return the parts without their common pairs in all but one of them, and the number of such pairs."""
    # The part that keeps a common pair comes first; validation and profiles lose it to both others.
    order = sorted(parts, key=lambda name: (name not in ("train", "test"), name != overlap))
    disjoint: dict[str, Ratings] = {}
    repeated = 0
    for place, name in enumerate(order):
        again = np.zeros(len(parts[name]), dtype=np.int8)
        for other in order[:place]:
            again += in_both(parts[name], parts[other])
        fresh = again == 0
        # A pair in all three parts was already counted in the second one.
        repeated += int(np.count_nonzero(again == 1))
        if overlap == "error" and not fresh.all():
            user = int(parts[name].users[np.argmin(fresh)])
            item = int(parts[name].items[np.argmin(fresh)])
            raise ImpossibleSplitError(
                f"{np.count_nonzero(~fresh):,} (user, item) pairs of the {name} part are also in another part "
                f"(first user {parts[name].user_ids.ids([user])[0]!r}, item {parts[name].item_ids.ids([item])[0]!r}); "
                "drop them with overlap=test (--overlap test: kept in the test part only) or overlap=train"
            )
        disjoint[name] = parts[name] if fresh.all() else parts[name].keep(fresh)
    return disjoint, repeated
