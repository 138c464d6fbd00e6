"""Other tests and corrections change what is significant, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import compare
from cranfield._errors import SettingError
from cranfield.audits import Audit, Grid, UserContributions, VariedDecision, read_audit
from cranfield.audits.parsing import audit_settings
from cranfield.experiments import Decisions, System
from cranfield.facts import audit as audit_facts

TESTINGS = [
    audit_facts.PairedTest(test, way)
    for test in ("permutation", "student", "wilcoxon", "sign")
    for way in ("none", "holm")
]


@pytest.fixture(scope="module")
def values():
    """Three systems, two universes, 40 users with values of a few levels, so that differences are tied."""
    rng = np.random.default_rng(3)
    return rng.integers(0, 10, size=(3, 2, 40)) / 10 + np.array([0.0, 0.1, 0.15])[:, None, None]


@pytest.fixture(scope="module")
def found(values):
    grid = Grid.product([VariedDecision("cutoff", "equivalent", ("5", "10"))])
    return Audit.of(grid, "abc", values.mean(axis=2), values, draws=250, resamples=20, testings=TESTINGS)


@pytest.mark.parametrize("testing", TESTINGS, ids=str)
def test_p_values_of_a_universe_are_those_of_compare(found, values, testing):
    scores = {name: values[place, 0] for place, name in enumerate("abc")}
    expected = compare(scores, significance=testing.significance, correction=testing.correction).rows
    rows = found.significance().filter(significance=testing.significance, correction=testing.correction)
    assert rows["start_p"].to_list() == pytest.approx(expected["p"].to_list(), rel=1e-4)
    assert rows["start_p_corrected"].to_list() == pytest.approx(expected["p_corrected"].to_list(), rel=1e-4)
    assert rows["start_significant"].to_list() == expected["significant"].to_list()


def test_shares_and_influence_are_the_same_with_and_without_other_tests(found, values):
    plain = Audit.of(found.grid, "abc", values.mean(axis=2), values, draws=250, resamples=20)
    assert plain.shares().equals(found.shares())
    assert plain.influence().equals(found.influence())
    assert plain.significance().is_empty()
    assert set(plain.verdict) < set(found.verdict)


def test_a_test_of_ranks_is_not_made_under_weights_or_over_different_users(values):
    grid = Grid.product([VariedDecision("average", "equivalent", ("mean", "weighted"))])
    terms = UserContributions(values, paired=np.array([True, False]))
    audit = Audit.of(grid, "abc", values.mean(axis=2), terms, draws=250, resamples=20, testings=TESTINGS)
    counts = dict(audit.significance().filter(system_a="a", system_b="b").select("significance", "universes").rows())
    assert counts == {"permutation": 2, "student": 2, "wilcoxon": 1, "sign": 1}


def test_users_who_are_not_in_a_universe_are_no_ties(values):
    some = values.copy()
    some[:, 1, 20:] = 0.0
    grid = Grid.product([VariedDecision("cutoff", "equivalent", ("5", "10"))], start=1)
    terms = UserContributions(some, users=np.array([40, 20]))
    testings = [audit_facts.PairedTest("wilcoxon(zeros=pratt)", "none")]
    audit = Audit.of(grid, "abc", values.mean(axis=2), terms, draws=250, resamples=20, testings=testings)
    scores = {name: values[place, 1, :20] for place, name in enumerate("abc")}
    rows = audit.significance().filter(significance="wilcoxon(zeros=pratt)")
    expected = compare(scores, significance="wilcoxon(zeros=pratt)", correction="none").rows["p"].to_list()
    assert rows["start_p"].to_list() == pytest.approx(expected, rel=1e-4)


def test_the_facts_name_the_tests_and_what_they_say_of_the_start(found):
    by_test, at_start = found.pair_facts("a", "b")[-2:]
    assert isinstance(by_test, audit_facts.SignificantByTest)
    assert isinstance(at_start, audit_facts.StartByTest)
    assert by_test.rows == at_start.rows == tuple(row for row in found.tests if _is_whole(row, "a", "b"))


def _is_whole(row, first, second):
    return (row["system_a"], row["system_b"], row["question"]) == (first, second, None)


def test_the_table_is_a_file_and_reads_back(found, tmp_path):
    names = [path.name for path in found.save(tmp_path)]
    assert "significance.csv" in names
    assert names[-1] == "audit.json"
    assert read_audit(tmp_path).significance().equals(found.significance())


def test_tests_are_crossed_with_corrections_and_open_no_universe(tiny):
    three = (System("popular", "popularity"), System("near", "knn(k=5)"), System("any", "random"))
    vary = {"cutoff": [5, 10], "significance": ["t", "sign"], "correction": ["none", "holm"]}
    settings = audit_settings(tiny(systems=three, decisions=Decisions(significance="sign"), audit={"vary": vary}))
    assert settings.names == ("cutoff",)
    assert list(map(str, settings.testings)) == ["sign with holm", "sign", "student with holm", "student"]


def test_the_correction_over_all_pairs_at_once_is_holm_in_an_audit_and_cannot_be_opened(tiny):
    three = (System("popular", "popularity"), System("near", "knn(k=5)"), System("any", "random"))
    vary = {"cutoff": [5, 10], "significance": ["permutation", "student"]}
    settings = audit_settings(tiny(systems=three, audit={"vary": vary}))
    assert [testing.correction for testing in settings.testings] == ["holm", "holm"]
    with pytest.raises(SettingError, match="correction=max_t looks at all pairs of systems at once"):
        audit_settings(tiny(systems=three, audit={"vary": {**vary, "correction": ["max_t", "none"]}}))
