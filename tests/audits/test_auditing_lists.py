"""Audits of ranked lists that are given."""

from __future__ import annotations

from contextlib import nullcontext

import polars as pl
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield._terminal import Progress
from cranfield.audits import universes
from cranfield.audits.auditing import audit_runs


@pytest.fixture(scope="module")
def split():
    return cf.splits.random(cf.simulate.world(60, 40, 900).ratings, train=0.6)


@pytest.fixture(scope="module")
def whole(split):
    return cf.recommend(split, ["popularity", "knn(k=5)"], length="all", fill="popularity")


@pytest.fixture(scope="module")
def short(split):
    return cf.recommend(split, ["popularity", "knn(k=5)"], length=10)


def test_measuring_is_opened_as_far_as_the_lists_reach(short, split):
    found = audit_runs(short, split.test)
    options = {opened.name: opened.options for opened in found.grid.varied}
    assert options["cutoff"] == ("5", "10")
    assert set(options) >= {"lists", "metrics", "threshold", "average", "coverage"}
    assert found.systems == ("popularity", "knn(k=5)")


def test_ranks_are_places_unless_their_gaps_are_closed(short, split):
    runs = {run.name: run.frame().select("user", "item", rank=pl.col("rank") * 2) for run in short}
    vary = {"cutoff": [2, 4]}
    for gaps in ("keep", "close"):
        found = audit_runs(runs, split.test, metric="P@4", vary=vary, gaps=gaps)
        measured = cf.measure(runs, split.test, ["P@2", "P@4"], gaps=gaps).average()
        assert sorted(found.averages.ravel().tolist()) == pytest.approx(sorted(measured.ravel().tolist()))


def test_short_lists_cannot_be_condensed_and_the_share_of_users_is_said(short, split):
    found = audit_runs(short, split.test, train=split.train, vary={"lists": ["full", "condensed"]})
    ((_, reason),) = found.grid.invalid
    assert "too short to be condensed: at cut-off 10 items are missing for" in reason
    assert "% of the users" in reason


def test_progress_counts_systems_pairs_and_tests(whole, split, monkeypatch):
    bars = []

    def recorded(what, total, unit):
        bars.append((Progress(what, total, unit), []))
        monkeypatch.setattr(bars[0][0], "advance", bars[0][1].append)
        return nullcontext(bars[0][0])

    monkeypatch.setattr(universes, "progress", recorded)
    runs = {name: whole[0].frame() for name in "ab"} | {"c": whole[1].frame()}
    vary = {"cutoff": [5, 10], "lists": ["full", "condensed"], "significance": ["permutation", "sign"]}
    audit_runs(runs, split.test, train=split.train, vary=vary)
    ((bar, steps),) = bars
    # Three systems in each of two set-ups; then three pairs with two tests each, and two steps per set-up.
    assert steps == [3] * 2 + [4] * 9
    assert bar.total == sum(steps)


def test_whole_lists_can_be_condensed(whole, split):
    found = audit_runs(whole, split.test, train=split.train, vary={"lists": ["full", "condensed"]})
    condensed = cf.measure(whole, split.test, "P@10", threshold=4, lists="condensed").average()[:, 0]
    assert found.grid.invalid == ()
    assert found.averages[:, 1].tolist() == condensed.tolist()


def test_users_without_a_list_have_none_to_be_condensed(whole, split):
    served = {run.name: run.frame().filter(pl.col("user") != 1) for run in whole}
    assert audit_runs(served, split.test, train=split.train, vary={"lists": ["full", "condensed"]}).grid.invalid == ()


@pytest.mark.parametrize(
    ("vary", "words"),
    [
        ({"split": ["random(train=0.1)"]}, "split cannot be opened on given lists"),
        ({"cutoff": [5, 20]}, "the longest list has 10 items, so a cut-off of 20 cannot be shown"),
        ({"systems": [1]}, "no decision 'systems'"),
        ({"average": ["mean", "urisk(baseline=knn)"]}, "there is no system 'knn'"),
    ],
)
def test_what_the_lists_cannot_show_is_refused(short, split, vary, words):
    with pytest.raises(SettingError, match=words):
        audit_runs(short, split.test, vary=vary)


def test_one_run_cannot_be_audited(short, split):
    with pytest.raises(SettingError, match="at least two systems"):
        audit_runs(short[:1], split.test)


def test_a_start_without_a_cutoff_is_refused_where_cutoffs_are_opened(short, split):
    with pytest.raises(SettingError, match="RR has no cut-off, and an audit of given lists opens it"):
        audit_runs(short, split.test, metric="RR")
    assert audit_runs(short, split.test, metric="RR", vary={"threshold": [4, 5]}).grid.n_universes == 2


def test_the_one_verb_audits_lists_as_it_audits_experiments(short, split, tmp_path):
    options = {"metric": "P@5", "threshold": 4, "train": split.train, "vary": {"cutoff": [3, 5]}}
    mine, theirs = (
        cf.audit(short, tmp_path / "out", test=split.test, **options),
        audit_runs(short, split.test, **options),
    )
    assert mine.verdict == theirs.verdict
    assert cf.audits.read_audit(tmp_path / "out").verdict == theirs.verdict
    for runs in (short, {run.name: run for run in short}, short[0], 3):
        with pytest.raises(SettingError, match=r"ranked lists are audited with the test ratings; give them as test="):
            cf.audit(runs)
    with pytest.raises(SettingError, match=r"metric=\.\.\. does nothing in an audit of an experiment; leave it out"):
        cf.audit("experiment.toml", metric="P@5")
    with pytest.raises(SettingError, match=r"allow_code=\.\.\. does nothing in an audit of ranked lists; leave it out"):
        cf.audit(short, test=split.test, allow_code=True)


@pytest.mark.parametrize("threshold", ["auto", None, 3.0])
def test_a_threshold_means_what_it_means_in_measure(short, split, threshold):
    found = audit_runs(short, split.test, metric="P@5", threshold=threshold, vary={"cutoff": [5, 10]})
    measured = cf.measure(short, split.test, ["P@5", "P@10"], threshold=threshold).average()
    assert sorted(found.averages.ravel().tolist()) == pytest.approx(sorted(measured.ravel().tolist()))
