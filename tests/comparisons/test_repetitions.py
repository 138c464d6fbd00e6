"""Users crossed with repetitions: the test, the intervals and the verdict include the spread between repetitions."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from cranfield._errors import SettingError
from cranfield.comparisons import compare
from cranfield.comparisons.errors import crossed_sign_test, crossed_test, standard_errors
from cranfield.comparisons.samples import as_scores, make_samples
from cranfield.comparisons.significance import sign, student
from cranfield.measures import Averaging
from cranfield.measures.joining import join_folds
from cranfield.tables import Vocabulary


def _repetitions(rng, users=200, times=4, seed_sd=0.011, gain=0.0):
    """Two systems of the same quality (but for ``gain``), whose quality varies with the seed of each training."""
    user = 1 + rng.beta(2, 5, users)
    parts = []
    for _ in range(times):
        quality = dict(zip(("one", "two"), rng.normal(0, seed_sd, 2)))
        noise = {name: rng.normal(0, 0.15, users) for name in quality}
        parts.append(as_scores({name: user + quality[name] + noise[name] + gain * (name == "one") for name in quality}))
    return parts


def test_two_seeds_of_one_system_differ_about_as_often_as_alpha_says():
    rng, worlds, tests = np.random.default_rng(5), 200, (student, sign, crossed_test, crossed_sign_test)
    false = np.zeros(len(tests))
    for _ in range(worlds):
        data, _ = make_samples(join_folds(_repetitions(rng), range(4)), Averaging(by="user"))
        false += [test(data)[0].p.item() < 0.05 for test in tests]
    over_users, crossed = np.split(false / worlds, 2)
    assert (over_users > 0.10).all()
    assert ((crossed >= 0.01) & (crossed <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / worlds))).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed_sd", [0.0, 0.011, 0.03])
def test_two_seeds_of_one_system_differ_about_as_often_as_alpha_says_in_many_worlds(seed_sd):
    rng, worlds, false = np.random.default_rng(6), 3000, 0
    for _ in range(worlds):
        data, _ = make_samples(join_folds(_repetitions(rng, seed_sd=seed_sd), range(4)), Averaging(by="user"))
        false += crossed_test(data)[0].p.item() < 0.05
    assert 0.01 <= false / worlds <= 0.065


def test_the_scores_of_repetitions_are_compared_over_users_crossed_with_them():
    parts = _repetitions(np.random.default_rng(1), seed_sd=0.03)
    result, alone = compare(parts), compare(join_folds(parts))
    row, users_only = (one.frame(detail=True).row(0, named=True) for one in (result, alone))
    assert row["method"] == "crossed"
    assert row["p"] > users_only["p"]
    assert row["difference"] == pytest.approx(users_only["difference"])
    for name in ("", "relative_", "effect_"):
        assert row[f"{name}upper"] - row[f"{name}lower"] > 1.2 * (
            users_only[f"{name}upper"] - users_only[f"{name}lower"]
        )
    assert row["degrees"] < users_only["degrees"] == 199
    means = np.array([[one.values[s, 0].mean() for one in parts] for s in range(2)])
    assert row["spread"] == pytest.approx((means[0] - means[1]).std(ddof=1))
    assert users_only["spread"] is None
    assert result.spread[0] == pytest.approx(means.std(axis=1, ddof=1))


def test_the_verdict_and_the_caption_say_so():
    parts = _repetitions(np.random.default_rng(1))
    result = compare(parts)
    assert result.caption.startswith(
        "t-test over users crossed with 4 repetitions (in place of the paired permutation test)"
    )
    said = result.verdict[-1]
    assert said.startswith(
        "Between 4 repetitions (new splits and seeds) the standard deviation of the average of value is one 0.0"
    )
    assert "intervals and p-values include it (users crossed with repetitions)" in said
    signs = compare(parts, significance="sign").caption
    assert signs.startswith("t-test of signs over users crossed with 4 repetitions (in place of the sign test)")
    assert all("repetition" not in sentence for sentence in compare(parts[0]).verdict)


def test_the_verdict_says_what_few_repetitions_can_show_where_they_limit_it():
    limited = compare(_repetitions(np.random.default_rng(1), times=3, seed_sd=0.05))
    size = f"{limited.power()['smallest_difference'].item():.4f}"
    assert f"; 3 of them can show a difference of {size} (power 0.8), and more users not" in limited.verdict[-1]
    rng = np.random.default_rng(2)
    ahead = rng.normal(size=60)
    alike = [as_scores({"one": ahead + 0.1 * rng.normal(size=60), "two": np.zeros(60)}) for _ in range(3)]
    assert "of them can show" not in compare(alike).verdict[-1]


def test_a_gate_over_repetitions_includes_their_spread():
    parts = _repetitions(np.random.default_rng(2), seed_sd=0.02, gain=0.01)
    crossed = compare(parts).no_worse("one", than="two", by=0.01).rows.row(0, named=True)
    alone = compare(join_folds(parts)).no_worse("one", than="two", by=0.01).rows.row(0, named=True)
    assert crossed["p"] > alone["p"]
    assert crossed["limit"] < alone["limit"]
    # More users do not reduce the spread between repetitions.
    assert crossed["users_needed"] > alone["users_needed"]


@pytest.mark.parametrize("average", ["weighted(by=judged)", "geometric(form=adjusted, epsilon=0.5)"])
def test_other_averages_are_crossed_by_their_influences(average):
    parts = _repetitions(np.random.default_rng(3), seed_sd=0.03)
    for one in parts:
        object.__setattr__(one, "judged", np.arange(1, 201))
    row = compare(parts, average=average).frame(detail=True).row(0, named=True)
    alone = compare(join_folds(parts), average=average).frame(detail=True).row(0, named=True)
    assert row["method"] == "crossed"
    assert row["standard_error"] > 1.2 * alone["standard_error"]


def test_averages_by_user_have_the_spread_in_their_interval():
    parts = _repetitions(np.random.default_rng(4), seed_sd=0.05)
    scores = join_folds(parts, range(4))
    frame, alone = (one.frame(by="user") for one in (scores, join_folds(parts)))
    means = np.array([[one.values[s, 0].mean() for one in parts] for s in range(2)])
    assert frame["spread"].to_list() == pytest.approx(means.std(axis=1, ddof=1).tolist())
    assert ((frame["upper"] - frame["lower"]) > 1.5 * (alone["upper"] - alone["lower"])).all()
    assert "users crossed with repetitions" in frame["interval"][0]
    assert alone["spread"].is_null().all()
    assert f"(sd {frame['spread'][0]:.4f})" in scores.table(by="user").text()
    median = scores.frame("median", by="user")
    medians = np.array([[np.median(one.values[s, 0]) for one in parts] for s in range(2)])
    assert median["spread"].to_list() == pytest.approx(medians.std(axis=1, ddof=1).tolist())
    assert median["interval"][0] == "95% exact order statistics"


@pytest.mark.parametrize("significance", ["wilcoxon", "wilcoxon(zeros=pratt)", "tukey"])
def test_a_test_that_cannot_include_the_spread_is_refused(significance):
    message = f"significance='{re.escape(significance)}' is over users alone .* permutation, .*bootstrap or sign"
    with pytest.raises(SettingError, match=message):
        compare(_repetitions(np.random.default_rng(1)), significance=significance)


def test_lists_by_themselves_cannot_include_the_spread():
    with pytest.raises(SettingError, match="by='list' cannot include the spread between repetitions; set by='user'"):
        compare(_repetitions(np.random.default_rng(1)), by="list")


def test_the_sign_test_over_repetitions_is_that_of_the_signs_in_each():
    parts = _repetitions(np.random.default_rng(3), gain=0.05)
    signs = [as_scores({"one": np.sign(part.values[0, 0] - part.values[1, 0]), "two": np.zeros(200)}) for part in parts]
    row = compare(parts, significance="sign").frame(detail=True).row(0, named=True)
    assert row["p"] == pytest.approx(compare(signs, significance="student").frame(detail=True)["p"].item())
    assert row["better"] == "one"
    gate = compare(parts, significance="sign").no_worse("one", than="two", by=0.01)
    assert gate.outcome == "shown"


def test_equal_groups_have_the_spread_between_repetitions_in_their_error():
    """In worlds with users in one or both groups, the reported error is about how far the difference really varies."""
    rng, errors, differences = np.random.default_rng(8), [], []
    groups = np.repeat([0, 1], [80, 60]).astype(np.int16)
    users = np.concatenate([np.arange(80), np.arange(40, 100)]).astype(np.int32)
    for _ in range(50):
        quality, parts = 1 + rng.normal(0, 0.1, 100), []
        for _ in range(4):
            shift = rng.normal(0, 0.05, (2, 2))
            values = {name: quality[users] + shift[s][groups] + rng.normal(0, 0.2, 140) for s, name in enumerate("ab")}
            part = as_scores(values)
            parts.append(
                replace(
                    part,
                    users=users,
                    user_ids=Vocabulary.of(np.arange(100)),
                    groups=groups,
                    group_names=("head", "tail"),
                )
            )
        (sample,), _ = make_samples(join_folds(parts, range(4)), Averaging(by="user", groups="equal"))
        errors.append(standard_errors(sample).error.item())
        differences.append(np.subtract(*sample.averages(slice(0, 1))).item())
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(differences), rel=0.25)
    row = compare(parts, groups="equal").frame(detail=True).row(0, named=True)
    assert (row["method"], row["standard_error"]) == ("crossed", pytest.approx(errors[-1]))


def test_what_the_users_could_have_shown_has_the_spread_between_repetitions_in_it():
    from scipy.stats import nct, t

    result = compare(_repetitions(np.random.default_rng(1), times=3, seed_sd=0.03))
    row, power = (frame.row(0, named=True) for frame in (result.frame(detail=True), result.power()))
    assert row["degrees"] < 20
    critical = t.ppf(0.975, row["degrees"])
    shift = power["smallest_difference"] / row["standard_error"]
    reached = nct.sf(critical, row["degrees"], shift) + nct.cdf(-critical, row["degrees"], shift)
    assert reached == pytest.approx(0.8, abs=1e-6)
    assert power["smallest_difference"] > (row["upper"] - row["lower"]) / 2
    assert np.isnan(power["users_needed"])
