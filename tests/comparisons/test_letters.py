"""Compact letters say exactly which systems differ."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cranfield.comparisons.p_values import compact_letters


@given(
    st.integers(2, 8).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.booleans(), min_size=n * n, max_size=n * n)))
)
def test_two_systems_share_a_letter_exactly_when_they_do_not_differ(case):
    n, flags = case
    differ = np.triu(np.array(flags).reshape(n, n), 1)
    differ = differ | differ.T
    letters = compact_letters(differ, list(range(n)))
    for i in range(n):
        for j in range(i):
            assert bool(set(letters[i]) & set(letters[j])) == (not differ[i, j])


def test_the_best_system_has_the_first_letter():
    differ = np.ones((3, 3), dtype=bool)
    assert compact_letters(differ, [2, 0, 1]) == ["b", "c", "a"]


def test_more_groups_than_letters_of_the_alphabet_stay_apart():
    letters = compact_letters(~np.eye(30, dtype=bool), list(range(30)))
    assert letters[25:28] == ["z", "a1", "b1"]
    assert len(set(letters)) == 30
