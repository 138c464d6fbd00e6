"""Splits that are tested on the long tail: the head stays in training, and is in no other part."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import ImpossibleSplitError, SettingError, simulate, splits
from cranfield.data import filters


@pytest.fixture(scope="module")
def ratings():
    return simulate.world(users=80, items=50, ratings=1_500, seed=3).ratings


@pytest.mark.parametrize("of", ["items", "ratings"])
def test_the_head_is_what_the_filter_drops_and_only_training_has_it(ratings, of):
    split = splits.tail_test(ratings, head=0.3, of=of, seed=5, validation=0.2)
    tail = set(filters.drop_head(ratings, share=0.3, of=of).item_ids.all.to_list())
    for name in ("validation", "test"):
        assert set(split.parts[name].frame()["item"]) <= tail
    assert set(split.train.frame()["item"]) - tail
    assert split.step.effect["head_items"] == ratings.n_items - len(tail)


def test_the_tail_is_divided_as_if_nothing_were_left_out(ratings):
    split = splits.tail_test(ratings, head=0.2, train=0.7, seed=4)
    parts = [set(part.frame().rows()) for part in split.parts.values()]
    assert not set.intersection(*parts)
    missing = set(ratings.frame().rows()) - set.union(*parts)
    assert split.step.effect["left_out"] == len(missing)
    popular = {item for _, item, *_ in missing}
    assert len(popular) <= 10
    counts = dict(zip(ratings.item_ids.all.to_list(), ratings.item_counts.tolist()))
    tested = np.flatnonzero(split.test.item_counts > 0)
    assert min(counts[item] for item in popular) >= ratings.item_counts[tested].max()
    assert "10 most popular items are not tested" in split.notes[0]


@pytest.mark.parametrize(
    ("spelling", "error", "message"),
    [
        ("tail_test(head=0.001)", ImpossibleSplitError, "is none of the 50 items; choose another share"),
        ("tail_test(head=0.999)", ImpossibleSplitError, "is all of the 50 items; choose another share"),
        ("tail_test(head=1.5)", SettingError, "head"),
        ("tail_test(of=users)", SettingError, "of"),
    ],
)
def test_a_head_that_leaves_nothing_to_choose_is_refused(ratings, spelling, error, message):
    with pytest.raises(error, match=message):
        splits.apply(ratings, spelling)
