"""Comparing users that are kept in parts is comparing them at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cranfield as cf
from cranfield.comparisons.permutations import passes
from cranfield.data import Vocabulary
from cranfield.measures.part_files import rows_of, scores_of
from cranfield.measures.score_parts import Census, ScoreParts, facts_of
from cranfield.measures.scores import Scores

METRICS = ("P@10", "nDCG@10", "RR", "AP")


@dataclass
class ListStore:
    """Parts in a list."""

    parts: list

    def each(self, function):
        return [function(part) for part in self.parts]

    def per_user(self):
        return (part.per_user() for part in self.parts)


def random_scores(seed, users=60, systems=3, *, full=False):
    """Return scores with ties, undefined values and lists that some systems do not give."""
    random = np.random.default_rng(seed)
    shape = (systems, len(METRICS), users)
    values = random.random(shape) + 0.15 * np.arange(systems)[:, None, None] * random.random(users)
    values[:, 0] = np.round(values[:, 0] * 10) / 10
    values[:, 2] = 1 / np.maximum(1, np.rint(values[:, 2] * 12))
    covered = np.ones((systems, users), dtype=bool)
    if not full:
        covered = random.random((systems, users)) > 0.1
        values[:, 3, random.random(users) < 0.1] = np.nan
    values = np.where(covered[:, None], values, 0.0)
    relevant = random.integers(1, 9, users)
    return Scores(
        systems=tuple(f"s{place}" for place in range(systems)),
        metrics=METRICS,
        values=values,
        covered=covered,
        users=np.arange(users, dtype=np.int32),
        user_ids=Vocabulary(pl.Series(np.sort(random.permutation(10 * users)[:users]))),
        judged=relevant + random.integers(0, 4, users),
        relevant=relevant,
        lower_is_better=(False,) * len(METRICS),
    )


def in_parts(scores, n, seed=0):
    """Return the same scores in parts, each of which has been a table in between."""
    place = np.random.default_rng(seed).integers(0, n, scores.n_lists)
    census = Census.of(scores)
    facts = facts_of(scores, census)
    lists = [scores.of_lists(place == part) for part in np.unique(place)]
    return ScoreParts(facts, ListStore([scores_of(rows_of(part), facts) for part in lists]), census)


def same_comparison(mine, theirs, atol=1e-12):
    assert_frame_equal(mine.frame(), theirs.frame(), rel_tol=1e-12, abs_tol=atol)
    assert mine.shortfall == theirs.shortfall
    assert mine.population == theirs.population
    assert mine.step.notes == theirs.step.notes
    assert mine.caption == theirs.caption


AVERAGES = [{}, {"average": "weighted(by=relevant)"}, {"average": "geometric(form=adjusted)"}, {"coverage": "reduced"},
            {"undefined": "leave out"}]  # fmt: skip
TESTS = ["permutation", "student", "sign", "bootstrap(resamples=40, weights=poisson)", "log_student"]


# Every test with the mean, and the permutation test with every average; the other combinations are slow tests.
PAIRS = [
    pytest.param(test, averaging, marks=() if not averaging or test == "permutation" else pytest.mark.slow)
    for test in TESTS
    for averaging in AVERAGES
]


@pytest.mark.parametrize(("significance", "averaging"), PAIRS, ids=str)
def test_tests_of_parts_are_those_of_all_users_at_once(significance, averaging):
    if averaging.get("average") and significance in ("sign", "log_student"):
        pytest.skip("this test has no such form")
    for seed, users in enumerate((1, 7, 24)):
        scores = random_scores(seed, users)
        mine, theirs = (
            cf.compare(given, significance=significance, correction="holm", **averaging)
            for given in (in_parts(scores, 4), scores)
        )
        same_comparison(mine, theirs)


@pytest.mark.parametrize("users", [700, pytest.param(6000, marks=pytest.mark.slow)])
def test_p_values_of_many_users_come_of_passes_over_the_parts(users):
    scores = random_scores(3, users, full=users == 700)
    mine, theirs = (cf.compare(given) for given in (in_parts(scores, 3), scores))
    assert {"lattice", "inversion", "saddlepoint"} & set(theirs.frame()["method"])
    same_comparison(mine, theirs)


def test_a_few_large_differences_among_many_small_ones_take_further_passes(monkeypatch):
    monkeypatch.setattr(passes, "_HELD", 40)
    monkeypatch.setattr(passes, "_MORE_HELD", 60)
    looks, sums = [], passes._phi_sums
    monkeypatch.setattr(passes, "_phi_sums", lambda *given: looks.append(1) or sums(*given))
    scores = random_scores(3, 90, systems=2, full=True)
    scores.values[1] = scores.values[0] + 0.01 * np.random.default_rng(1).normal(0.1, 1, (len(METRICS), 90))
    scores.values[1, :, :2] += [0.7, -0.4]
    mine, theirs = (cf.compare(given) for given in (in_parts(scores, 3), scores))
    assert looks
    # Both stop when the remainder is within the tolerance, 1e-6.
    np.testing.assert_allclose(mine.frame()["p"], theirs.frame()["p"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("averaging", [*AVERAGES, {"average": "geometric(form=trec_eval)"}], ids=str)
def test_averages_of_parts_are_those_of_all_users_at_once(averaging):
    for seed, users in enumerate((1, 5, 80)):
        scores = random_scores(seed, users)
        parts = in_parts(scores, 3)
        assert_frame_equal(parts.frame(**averaging), scores.frame(**averaging), rel_tol=1e-12, abs_tol=1e-14)
        assert parts.table(digits=6, **averaging) == scores.table(digits=6, **averaging)


def test_bootstrap_intervals_of_parts_do_not_depend_on_the_parts():
    scores = random_scores(1, 400)
    frames = [in_parts(scores, n, seed=n).frame(interval="bootstrap", seed=5) for n in (1, 2, 7)]
    for frame in frames[1:]:
        assert_frame_equal(frame, frames[0], rel_tol=1e-12)
    close = scores.frame(interval="bootstrap", seed=5)
    width = close["upper"] - close["lower"]
    assert ((frames[0]["lower"] - close["lower"]).abs() < 0.15 * width).all()


def test_values_of_parts_are_those_of_all_users():
    scores = random_scores(2, 30)
    mine = pl.concat(in_parts(scores, 4).per_user_parts()).sort("system", "metric", "user")
    assert_frame_equal(mine, scores.per_user().sort("system", "metric", "user"), check_dtypes=False)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"significance": "wilcoxon"}, "it ranks the differences of all users at once"),
        ({"significance": "tukey"}, "it shuffles the values of all users at once"),
        ({"average": "median"}, "average='median' needs the values of all users at once"),
        ({"subsets": 3}, "subsets of users are drawn from all of them at once"),
        ({"significance": "permutation(method=sampled)"}, "cannot be used for users that are kept in parts"),
        ({"significance": "bootstrap(weights=multinomial)"}, "are drawn with Poisson weights"),
    ],
)  # fmt: skip
def test_what_needs_all_users_at_once_is_refused_with_a_reason(options, reason):
    with pytest.raises(cf.SettingError, match=reason.replace("(", r"\(")):
        cf.compare(in_parts(random_scores(0), 3), **options)


def test_facts_are_kept_and_values_are_not_there():
    scores = replace(random_scores(0), notes=("a note",))
    parts = in_parts(scores, 3)
    assert parts.notes == scores.notes
    assert parts.user_coverage.tolist() == scores.user_coverage.tolist()
    with pytest.raises(cf.SettingError, match="values needs the values of all users at once"):
        parts.values  # noqa: B018


def test_a_baseline_may_be_named_as_it_is_spelled():
    scores = replace(random_scores(4), systems=("item mean", "s1", "s2"))
    mine, theirs = (
        cf.compare(given, baseline="average", significance="student") for given in (in_parts(scores, 2), scores)
    )
    assert set(mine.frame()["system_b"]) == {"item mean"}
    same_comparison(mine, theirs)
