"""A run and a test set are joined once; judged lists can be measured, and kept as files."""

from __future__ import annotations

import gc
import weakref
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import cranfield as cf
from cranfield.judgments import Judged, Judgments
from cranfield.judgments import judging as judging_module
from cranfield.metrics import known_metrics
from cranfield.rankings import read_run
from cranfield.tables import Vocabulary

RUNS = {
    "one": {"ann": {"x": 3.0, "y": 2.0, "z": 2.0}, "bob": {"y": 2.0, "w": 1.0}, "eve": {"x": 1.0}},
    "two": {"ann": {"z": 3.0, "x": 2.5}, "cid": {"w": 4.0, "y": 3.0, "x": 3.0}},
}
TEST = cf.Ratings.of(["ann", "ann", "bob", "cid", "cid"], ["x", "y", "w", "x", "v"], [5, 2, 4, 3, 1])
TRAIN = cf.Ratings.of(["ann", "bob", "cid", "cid"], ["w", "x", "y", "w"], [4, 5, 2, 3])


@pytest.fixture
def joins(monkeypatch):
    """Count the joins, by the name of the run."""
    counted, join = Counter(), judging_module.join

    def counting(run, judgments):
        counted[run.name] += 1
        return join(run, judgments)

    monkeypatch.setattr(judging_module, "join", counting)
    return counted


@pytest.fixture
def encodings(monkeypatch):
    """Count how often the ids of one vocabulary are looked up in another."""
    counted, codes = Counter(), Vocabulary.codes

    def counting(self, ids):
        counted[id(self), id(ids)] += 1
        return codes(self, ids)

    monkeypatch.setattr(Vocabulary, "codes", counting)
    return counted


def test_measuring_comparing_assessing_and_reporting_join_once_per_run(joins, encodings, tmp_path):
    from cranfield.reports import other_decisions

    runs = cf.read_runs(RUNS)
    encodings.clear()
    scores = cf.measure(runs, TEST, ["P@2", "RR"], threshold=4, train=TRAIN, bounds=True)
    comparison = cf.compare(scores)
    assessment = cf.assess(runs, TEST, ["P@2", "nDCG@2"], threshold=4, scenarios="ratings", sizes=[1, 0.5], samples=2)
    cf.measures.by_popularity(runs, TEST, "P@2", train=TRAIN, lists="condensed")
    cf.compare_tools(runs, TEST, "P@2", threshold=3)
    variants = other_decisions(runs, TEST, ["P@2"], train=TRAIN)
    cf.write_report(scores, tmp_path / "page.html", comparison, assessment, variants=variants)
    assert joins == {"one": 1, "two": 1}
    again = {pair: count for pair, count in encodings.items() if count > 1}
    assert not again, "ids of one vocabulary are looked up in another once"


def test_a_run_over_the_vocabulary_of_the_test_set_is_not_encoded(encodings):
    ratings = cf.Ratings.of(
        [u for u in range(8) for _ in range(6)], [i for u in range(8) for i in range(u % 3, 6 + u % 3)]
    )
    split = cf.splits.random(ratings, train=0.5)
    runs = cf.recommend(split, ["popularity", "random"])
    encodings.clear()
    cf.measure(runs, split.test, ["P@5", "nDCG@5"], train=split.train)
    assert not encodings


def test_a_join_goes_with_its_run_and_with_its_test_set():
    for drop_run in (True, False):
        run, test = read_run(RUNS["one"], name="one"), cf.Ratings.of(["ann"], ["x"])
        cf.measure(run, test, "P@1")
        (join,) = judging_module._JOINS[run].values()
        kept = weakref.ref(join)
        del join
        if drop_run:
            del run
        else:
            del test
        gc.collect()
        assert kept() is None


def test_judged_lists_share_their_arrays_and_keep_nothing_that_was_made_of_them():
    run = read_run(RUNS["one"], name="one")
    first, second = cf.judge(run, TEST, threshold=4), cf.judge(run, TEST, threshold=2)
    assert first.ranks is second.ranks
    assert first.judgments.lists is second.judgments.lists
    cf.measure(first, metrics=["P@1", "nDCG(condensed=true)@1"])
    assert not first._views


def _spellings():
    for name, definition in known_metrics().items():
        if definition.family != "own":
            yield from {"none": [name], "required": [f"{name}@2"]}.get(definition.cutoff, [name, f"{name}@2"])


@given(data=st.data(), ties=st.sampled_from(["trec_eval", "average"]))
def test_every_metric_is_the_same_on_judged_lists_read_back_and_under_any_threshold(
    data, ties, worlds, ratings_of, tmp_path_factory
):
    lists, profiles = data.draw(worlds)
    # A run that shares no user or no item with the test set is an error.
    user, profile = next(iter(profiles.items()))
    lists = {**lists, user: {**lists.get(user, {}), next(iter(profile)): 0.5}}
    test, train = ratings_of(profiles), ratings_of({9: {0: 5, 3: 4}, 8: {0: 2, 7: 1}})
    spellings = sorted(_spellings())
    chosen = data.draw(st.lists(st.sampled_from(spellings), min_size=1, max_size=12, unique=True))
    run = read_run(lists, name="run", ties=ties)
    path = tmp_path_factory.mktemp("judged") / "run.npz"
    cf.write_judged(cf.judge(run, test), path)
    similarity = np.ones((test.n_items, test.n_items)) / 2
    for threshold in (1.0, 4.0):
        # A new object is a new run, so it shares nothing with the first.
        alone = read_run(lists, name="run", ties=ties)
        try:
            expected = cf.measure(alone, test, chosen, threshold=threshold, train=train, similarity=similarity)
        except cf.SettingError as error:
            if "predicted ratings" not in str(error):
                raise
            reject()
        back = cf.read_judged(path, test, lambda: run, train=train, similarity=similarity)
        shared = cf.judge(run, test, threshold=3, train=train, similarity=similarity)
        for judged in (back, shared):
            found = cf.measure(judged, metrics=chosen, threshold=threshold)
            for name in ("values", "overall", "filled", "unjudged", "item_coverage", "covered"):
                np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
            assert found.notes == expected.notes
            assert found.counts == expected.counts
            assert found.step.settings == expected.step.settings


def test_the_run_is_only_read_if_a_metric_asks_for_it(tmp_path):
    run, calls = read_run(RUNS["one"], name="one"), []

    def reading():
        calls.append(1)
        return run

    path = cf.write_judged(cf.judge(run, TEST), tmp_path / "one.npz")
    judged = cf.read_judged(path, TEST, reading, train=TRAIN)
    cf.measure(judged, metrics=["P@2", "nDCG@2", "AP", "bpref"], threshold=4)
    cf.measure(judged, metrics="P@2", lists="condensed")
    assert calls == []
    cf.measure(judged, metrics=["Entropy@2", "ItemCoverage@2"])
    cf.measure(judged, metrics=["RMSE"])
    assert calls == [1]
    with pytest.raises(cf.SettingError, match="whole lists"):
        cf.measure(cf.read_judged(path, TEST, train=TRAIN), metrics="Entropy@2")


def test_one_relevant_lists_are_judged_once_and_come_back(joins, tmp_path):
    ratings = cf.Ratings.of(
        [u for u in range(9) for _ in range(6)], [i for u in range(9) for i in range(u % 4, 6 + u % 4)]
    )
    split = cf.splits.random(ratings, train=0.5)
    runs = cf.recommend(split, ["popularity", "random"], relevant="one", threshold=1)
    scores = cf.measure(runs, split.test, ["RR", "nDCG@3"])
    judged = [cf.judge(run, split.test) for run in runs]
    assert judged[0].judgments is judged[1].judgments
    assert joins == {"popularity": 1, "random": 1}
    back = [cf.read_judged(cf.write_judged(one, tmp_path / f"{k}.npz"), split.test) for k, one in enumerate(judged)]
    for lists in (judged, back):
        np.testing.assert_array_equal(cf.measure(lists, metrics=["RR", "nDCG@3"]).values, scores.values)
        np.testing.assert_array_equal(cf.measure(lists, split.test, ["RR", "nDCG@3"]).values, scores.values)
        with pytest.raises(cf.InputError, match="judged by another test set"):
            cf.measure(lists, split.train, "RR")


def test_judged_lists_of_another_test_set_or_run_are_refused(tmp_path):
    run, other = read_run(RUNS["one"], name="one"), cf.Ratings.of(["ann"], ["x"])
    path = cf.write_judged(cf.judge(run, TEST), tmp_path / "one.npz")
    with pytest.raises(cf.InputError, match="judged by another test set"):
        cf.read_judged(path, other)
    with pytest.raises(cf.InputError, match="is not the one that was judged"):
        cf.read_judged(path, TEST, read_run(RUNS["two"], name="two"))
    with pytest.raises(cf.InputError, match="judged by another test set"):
        cf.measure(cf.judge(run, TEST), other, "P@1")
    part = TEST.keep(np.arange(len(TEST)) > 0)  # a list has other relevant items in a part of the test set
    with pytest.raises(cf.InputError, match="judged by another test set"):
        cf.measure(cf.judge(run, part), TEST, "P@1")
    with pytest.raises(cf.InputError, match="the run two has other lists than one"):
        cf.measure([cf.judge(run, TEST), cf.judge(read_run(RUNS["two"], name="two"), other)], metrics="P@1")
    with pytest.raises(cf.SettingError, match="2 judged lists are called 'one'"):
        cf.measure([cf.judge(run, TEST)] * 2, metrics="P@1")
    with pytest.raises(cf.SettingError, match="decided when these lists were judged"):
        cf.measure(cf.judge(run, TEST), metrics="P@1", negative_grades="pooled")


def test_a_damaged_file_of_judged_lists_is_one_line(tmp_path):
    path = cf.write_judged(cf.judge({"one": RUNS["one"]}, TEST), tmp_path / "one.npz")
    whole = path.read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2], whole[:200] + b"\0" * 40 + whole[240:]):
        path.write_bytes(content)
        with pytest.raises(cf.InputError, match=r"not a file of judged lists, or it is damaged|another version"):
            cf.read_judged(path, TEST)
    with pytest.raises(cf.InputError, match="there is no such file"):
        cf.read_judged(tmp_path / "none.npz", TEST)
    with pytest.raises(cf.SettingError, match=r"does not end in .npz"):
        cf.write_judged(cf.judge({"one": RUNS["one"]}, TEST), tmp_path / "one.dat")


def test_judge_takes_one_run_and_judgments_keep_their_reading():
    with pytest.raises(cf.SettingError, match="judge takes one run, and 2 were given"):
        cf.judge(RUNS, TEST)
    judgments = Judgments.of(TEST, 4.0)
    assert cf.judge({"one": RUNS["one"]}, judgments).judgments.threshold == 4.0
    assert cf.judge({"one": RUNS["one"]}, judgments, threshold=2).judgments.threshold == 2.0
    with pytest.raises(cf.SettingError, match="decided when these judgments were made"):
        cf.judge({"one": RUNS["one"]}, judgments, negative_grades="unjudged")
    made = cf.judge({"one": RUNS["one"]}, judgments)
    nameless = Judged(made.judgments, made.lists, made.ranks, made.pointers, made.lengths)
    with pytest.raises(cf.SettingError, match="do not say which run they belong to"):
        cf.measure(nameless, metrics="P@1")


@pytest.mark.parametrize("threshold", ["auto", None, 4.0])
def test_a_threshold_means_the_same_for_lists_judged_lists_and_those_of_a_file(threshold, tmp_path):
    test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 3, 2])
    run = read_run({"ann": ["y", "x"], "bob": ["x"]}, name="mine")
    expected = cf.measure(run, test, "RR", threshold=threshold).average()
    judged = cf.judge(run, test)
    path = cf.write_judged(judged, tmp_path / "mine.npz")
    for lists in (judged, cf.judge(run, test, threshold=threshold), cf.read_judged(path, test, threshold=threshold)):
        assert cf.measure(lists, metrics="RR", threshold=threshold).average() == expected
    if threshold == "auto":
        assert cf.measure(cf.read_judged(path, test), metrics="RR").average() == expected == [[0.25]]
