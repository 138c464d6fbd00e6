"""What a `Run` knows about itself."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import Run, SettingError
from cranfield.rankings.encode import encode


def _run(**changed):
    fields = {
        "name": "s",
        "user_ids": encode(["u", "v", "w"])[0],
        "item_ids": encode(["a", "b", "c"])[0],
        "users": np.arange(3, dtype=np.int32),
        "indptr": np.array([0, 3, 5, 6]),
        "items": np.array([0, 1, 2, 0, 1, 0], dtype=np.int32),
        "scores": np.array([3.0, 2, 2, 1, 1, 1]),
    }
    return Run(**{**fields, **changed})


def test_a_tie_across_the_cutoff_is_one_between_the_last_in_and_the_first_out():
    assert _run().ties_across(1).tolist() == [False, True, False]
    assert _run().ties_across(2).tolist() == [True, False, False]
    assert _run().ties_across(3).tolist() == [False, False, False]


def test_lists_without_scores_have_no_ties():
    assert not _run(scores=None).ties_across(1).any()


def test_in_lists_that_are_not_whole_a_tie_is_sought_by_rank():
    ranks = np.array([2, 5, 6, 4, 5, 6], dtype=np.int32)
    assert _run(ranks=ranks).ties_across(5).tolist() == [True, False, False]
    assert _run(ranks=ranks).ties_across(4).tolist() == [False, True, False]
    assert _run(ranks=ranks).ties_across(2).tolist() == [False, False, False]


def test_a_cutoff_below_one_is_refused():
    with pytest.raises(SettingError, match="positive"):
        _run().ties_across(0)
