"""Scores that are put together from parts of the users are those of measuring at once."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cranfield as cf

METRICS = ["P@2", "nDCG", "AP@3", "bpref", "AUC"]


@given(data=st.data(), parts=st.integers(1, 4), shared=st.booleans(), groups=st.booleans())
def test_joined_scores_are_those_of_measuring_at_once(data, parts, shared, groups, worlds, ratings_of):
    lists, profiles = data.draw(worlds)
    # Every part must know a user and an item of the runs; parts of one vocabulary do.
    lists = {**({} if shared else {user: {12: 0.1} for user in profiles}), next(iter(profiles)): {12: 0.1}, **lists}
    lists = {user: {**own, 12: 0.1} for user, own in lists.items()}
    runs = cf.read_runs({"a": lists, "b": {user: dict(reversed(own.items())) for user, own in lists.items()}})
    # Bounds depend on the highest rating of the test set, so every part must contain it.
    test = ratings_of({user: {**own, 12: 5} for user, own in profiles.items()})
    names = {user: f"g{user % 2}" for user in profiles} if groups else None
    whole = cf.measure(runs, test, METRICS, threshold=3, bounds=True, groups=names)
    places = [k % parts for k in range(test.n_users)]
    owners = np.array(data.draw(st.permutations(places)))
    cut = []
    for part in range(parts):
        kept = test.keep(owners[test.users] == part)
        kept = kept if shared else kept.compact()
        if len(kept):
            cut.append(cf.measure(runs, kept, METRICS, threshold=3, bounds=True, groups=names))
    joined = cf.Scores.join(cut)
    assert joined.user_ids.ids(joined.users).to_list() == whole.user_ids.ids(whole.users).to_list()
    for name in ("values", "covered", "judged", "relevant"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name), err_msg=name)
    for name in ("filled", "unjudged"):
        np.testing.assert_allclose(getattr(joined, name), getattr(whole, name), rtol=1e-12, err_msg=name)
    for options in ({}, {"average": "median"}, {"coverage": "reduced", "by": "user"}):
        mine, theirs = (one.frame(**options).drop("item_coverage") for one in (joined, whole))
        assert mine.select(pl.exclude("filled", "unjudged")).equals(theirs.select(pl.exclude("filled", "unjudged")))
    if groups:
        np.testing.assert_array_equal(joined.average(groups="equal"), whole.average(groups="equal"))


def test_bootstrap_intervals_are_those_of_measuring_at_once():
    rng = np.random.default_rng(0)
    runs = {"mine": {user: rng.permutation(9).tolist() for user in range(12)}}
    test = cf.Ratings.of(np.repeat(np.arange(12), 3), np.concatenate([rng.permutation(9)[:3] for _ in range(12)]))
    parts = [cf.measure(runs, test.keep(test.users % 2 == part), "AP@5") for part in (1, 0)]
    ends = [
        one.frame(interval="bootstrap").select("lower", "upper").row(0)
        for one in (cf.Scores.join(parts), cf.measure(runs, test, "AP@5"))
    ]
    assert ends[0] == ends[1]


def test_parts_that_cannot_be_put_together_are_refused():
    runs, test = {"mine": {"ann": ["x"], "bob": ["y"]}}, cf.Ratings.of(["ann", "bob"], ["x", "y"])
    ann, bob = (test.keep(test.users == user) for user in (0, 1))
    with pytest.raises(cf.InputError, match="there are no parts"):
        cf.Scores.join([])
    with pytest.raises(cf.InputError, match="user bob is in more than one part"):
        cf.Scores.join([cf.measure(runs, one, "RR") for one in (test, bob)])
    with pytest.raises(cf.InputError, match=r"part 2 has other metrics \(P@1\) than part 1 \(RR\)"):
        cf.Scores.join([cf.measure(runs, ann, "RR"), cf.measure(runs, bob, "P@1")])
    with pytest.raises(cf.SettingError, match="ItemCoverage belongs to all lists together"):
        cf.Scores.join([cf.measure(runs, one, ["RR", "ItemCoverage"]) for one in (ann, bob)])
