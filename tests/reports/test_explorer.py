from __future__ import annotations

import base64

import numpy as np
import pytest

import cranfield as cf
from cranfield.comparisons.samples import as_scores
from cranfield.measures import Averaging
from cranfield.measures.joining import join_folds
from cranfield.reports.sections.explorer import AVERAGES, explore

SYSTEMS = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def variants(make_scores):
    metrics = ("P@5", "nDCG(gain=exp)@5")
    return [
        ("test", make_scores(systems=SYSTEMS, metrics=metrics, threshold=threshold, lists=lists))
        for threshold in (4, 3)
        for lists in ("full", "condensed")
    ]


@pytest.fixture(scope="module")
def explored(variants):
    return explore(variants)


def test_every_combination_of_decisions_is_there_once(explored):
    assert explored.options[1] == (3, 4)
    assert len(explored.rows) == 2 * 2 * 2 * len(AVERAGES) * 2
    assert len(np.unique(explored.rows, axis=0)) == len(explored.rows)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("policy", ["full", "reduced"])
def test_averages_are_those_of_the_scores(explored, variants, average, policy):
    scores = variants[1][1]
    row = explored.find(**{**explored.label("test", scores, "P@5"), "average": average, "coverage": policy})
    assert explored.means[row].tolist() == scores.average(average, coverage=policy)[:, 0].tolist()


@pytest.mark.parametrize(("average", "policy"), [("mean", "full"), (AVERAGES[-1], "reduced")])
def test_p_values_are_those_of_a_comparison_corrected_for_all_pairs(explored, variants, average, policy):
    scores = variants[0][1]
    row = explored.find(**{**explored.label("test", scores, "P@5"), "average": average, "coverage": policy})
    best = SYSTEMS[int(np.argmax(explored.means[row]))]
    how = {"significance": "student", "correction": "bonferroni", "average": average, "coverage": policy}
    frame = cf.compare(scores, metrics=["P@5"], **how).matrix()
    expected = dict(zip(frame["system"], frame[best]))
    for s, system in enumerate(SYSTEMS):
        p = explored.p[row, s]
        assert np.isnan(p) if system == best else p == pytest.approx(expected[system], rel=1e-12)


@pytest.mark.parametrize("policy", ["full", "reduced"])
def test_a_pair_has_the_p_value_of_the_page_under_the_decisions_of_the_page(explored, variants, policy):
    scores, averaging = variants[0][1], Averaging(coverage=policy)
    comparison = cf.compare(scores, coverage=policy, alpha=0.1)
    together = explored.with_comparison(comparison, "test", scores, averaging)
    assert together.alpha == together.as_dict()["alpha"] == 0.1
    changed = np.zeros(len(explored.rows), dtype=bool)
    for metric in scores.metrics:
        row = explored.find(**explored.label("test", scores, metric, averaging))
        best = SYSTEMS[int(np.argmax(explored.means[row]))]
        matrix = comparison.matrix(metric)
        expected = dict(zip(matrix["system"], matrix[best]))
        assert [p for p in together.p[row] if p == p] == [expected[name] for name in SYSTEMS if name != best]
        changed[row] = True
    assert np.array_equal(together.p[~changed], explored.p[~changed], equal_nan=True)


def test_p_values_have_the_spread_between_repetitions_in_them(make_scores):
    parts = [make_scores(systems=SYSTEMS, metrics=("P@5",), seed=seed) for seed in range(3)]
    explored = explore([("test", join_folds(parts, range(3)))])
    row = explored.find(**explored.label("test", parts[0], "P@5"))
    best = SYSTEMS[int(np.argmax(explored.means[row]))]
    crossed = cf.compare(parts, baseline=best, correction="none").frame(detail=True)
    assert set(crossed["method"]) == {"crossed"}
    expected = np.minimum(6 * crossed["p"].to_numpy(), 1)
    assert [p for p in explored.p[row] if p == p] == pytest.approx(expected.tolist())


def test_averages_without_a_paired_test_have_no_p_value(explored, variants):
    row = explored.find(**{**explored.label("test", variants[0][1], "P@5"), "average": "median", "coverage": "full"})
    assert np.isnan(explored.p[row]).all()


def test_packed_numbers_come_back(explored):
    packed = explored.as_dict()
    back = np.frombuffer(base64.b64decode(packed["means"]), dtype="<f4").reshape(explored.means.shape)
    assert np.allclose(back, explored.means, rtol=1e-6, equal_nan=True)
    sizes = [len(one["options"]) for one in packed["dimensions"]]
    for key, row in zip(packed["keys"], explored.rows):
        assert [key // int(np.prod(sizes[:d])) % sizes[d] for d in range(len(sizes))] == row.tolist()


def test_other_systems_are_refused(make_scores):
    with pytest.raises(cf.SettingError, match="same systems"):
        explore([("a", make_scores(systems=("a", "b"))), ("b", make_scores(systems=("b", "a")))])


def test_what_a_page_cannot_hold_is_left_out_and_named(variants, monkeypatch):
    numbers = len(SYSTEMS) * 2 * 2  # systems, metrics, coverage policies
    monkeypatch.setattr("cranfield.reports.sections.explorer._MOST_NUMBERS", 4 * numbers)
    found = explore(variants)
    assert (len(found.rows), found.left_out) == (4 * 2 * 2, "kinds of average other than the mean")
    monkeypatch.setattr("cranfield.reports.sections.explorer._MOST_NUMBERS", 3 * numbers)
    found = explore(variants)
    assert (len(found.rows), found.left_out.endswith("and 1 sets of other decisions")) == (3 * 2 * 2, True)
    monkeypatch.setattr("cranfield.reports.sections.explorer._MOST_NUMBERS", 1)
    assert explore(variants).options[1] == (4,)


def test_the_decisions_of_the_page_are_among_them(make_scores):
    folds = [make_scores(systems=SYSTEMS, metrics=("Recall@5",), users=users, seed=users) for users in (40, 20)]
    scores = join_folds(folds)
    asked = {"average": "weighted(by=judged)", "undefined": "leave out", "by": "user"}
    found = explore([("test", scores)], averaging=Averaging(**asked))
    for average in (*AVERAGES, asked["average"]):
        row = found.find(**found.label("test", scores, "Recall@5", Averaging(average=average)))
        assert found.means[row].tolist() == scores.average(**{**asked, "average": average})[:, 0].tolist()
    row = found.find(**found.label("test", scores, "Recall@5"))
    best = SYSTEMS[int(np.argmax(found.means[row]))]
    alone = cf.compare(scores, significance="student", correction="none", baseline=best, undefined="leave out").frame(
        detail=True
    )
    expected = np.minimum(6 * alone["p"].to_numpy(), 1)
    assert [p for p in found.p[row] if p == p] == pytest.approx(expected.tolist())


def test_of_averages_that_a_page_cannot_tell_apart_the_first_is_the_best():
    values = {"a": [0.1, 0.9, 0.4, 0.9], "b": [0.9, 0.4, 0.1, 0.9], "c": [0.0, 0.0, 0.0, 0.0]}
    assert np.mean(values["a"]) < np.mean(values["b"])
    found = explore([("test", as_scores(values))])
    assert np.isnan(found.p[0]).tolist() == [True, False, False]


def test_how_often_the_leader_stays_first_is_counted_over_all_combinations(explored, variants):
    start = explored.find(**explored.label("test", variants[0][1], "P@5"))
    found = explored.stays_first(start)
    leader = SYSTEMS[int(np.argmax(explored.means[start]))]
    leaders = [SYSTEMS[int(np.argmax(row.astype(np.float32)))] for row in explored.means]
    assert (found.system, found.first, found.of) == (leader, leaders.count(leader), len(leaders))
    counted = {(decision, option): counts for decision, option, *counts in found.by_option}
    for place, option in enumerate(("full", "condensed")):
        own = [name for name, row in zip(leaders, explored.rows) if row[2] == place]
        assert counted["Lists", option] == [own.count(leader), len(own)]
    assert not any(decision == "Test set" for decision, _ in counted)


def test_metrics_without_winners_do_not_count(make_scores):
    parts = [("test", make_scores(systems=SYSTEMS, metrics=("Coverage@5", "P@5"), threshold=level)) for level in (3, 4)]
    varied = explore(parts)
    first, second = (varied.find(**varied.label("test", parts[0][1], metric)) for metric in ("Coverage@5", "P@5"))
    assert varied.stays_first(first) is None
    assert varied.stays_first(second).of == len(varied.rows) // 2
