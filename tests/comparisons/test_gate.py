"""The gate: what is shown, what is undecided, what is worse, and how often it is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtrit

from cranfield._errors import SettingError
from cranfield.comparisons import compare
from cranfield.comparisons.effects import users_needed
from cranfield.comparisons.errors import chosen_test
from cranfield.comparisons.gate import gate
from cranfield.comparisons.samples import as_scores, make_samples
from cranfield.facts.gate import Margin
from cranfield.measures import Averaging

RNG = np.random.default_rng(0)
USER = RNG.beta(2, 5, 300)
NOISE = [RNG.gamma(60, 1 / 60, 300) for _ in range(4)]
OLD = USER * NOISE[0]
RATIOS = {"old": 1.0, "new": 1.015, "noisy": 0.99, "bad": 0.9}
# The averages have exactly these ratios.
VALUES = {
    name: USER * noise * ratio * OLD.mean() / (USER * noise).mean()
    for (name, ratio), noise in zip(RATIOS.items(), NOISE)
}


def test_a_system_is_shown_undecided_or_worse():
    result = compare(VALUES, significance="student")
    outcomes = {name: result.no_worse(name, than="old", by="2%").outcome for name in ("new", "noisy", "bad")}
    assert outcomes == {"new": "shown", "noisy": "undecided", "bad": "worse"}
    together = result.no_worse(than="old", by="2%")
    assert (bool(together), together.outcome) == (False, "worse")
    assert together.verdict[0] == "worse: “no worse than old by more than 2 %” is shown for 1 of 3 systems and metrics."
    assert bool(result.no_worse("new", than="old", by="2%"))
    assert "undecided: noisy (" in str(result.no_worse("noisy", than="old", by="2%"))
    assert result.better("old", than="bad").outcome == "shown"
    assert result.better("bad", than="old").outcome == "worse"
    assert result.better("new", than="noisy").rows["margin"].item() == 0


def test_the_limit_of_an_amount_is_the_end_of_a_one_sided_t_interval():
    found = compare(VALUES, significance="student").no_worse("noisy", than="old", by=0.004).rows.row(0, named=True)
    d = VALUES["noisy"] - VALUES["old"]
    limit = d.mean() - stdtrit(299, 0.95) * d.std(ddof=1) / np.sqrt(300)
    assert found["limit"] == pytest.approx(limit, abs=1e-7)
    assert found["gain"] == pytest.approx(d.mean())


def test_a_share_is_tested_user_by_user_against_the_baseline_made_worse():
    found = compare(VALUES, significance="student").no_worse("noisy", than="old", by="2%").rows.row(0, named=True)
    plain = compare({"noisy": VALUES["noisy"], "less": 0.98 * VALUES["old"]}, significance="student").frame(detail=True)
    assert found["p"] == pytest.approx(plain["p"].item() / 2)
    at_limit = (1 + found["limit"]) * VALUES["old"]
    there = compare({"noisy": VALUES["noisy"], "limit": at_limit}, significance="student").frame(detail=True)
    assert there["p"].item() / 2 == pytest.approx(0.05, abs=1e-4)


@pytest.mark.parametrize("significance", ["permutation", "wilcoxon", "sign", "bootstrap(resamples=200)", "log_student"])
def test_every_paired_test_has_its_own_limit_which_agrees_with_its_outcome(significance):
    values = {name: VALUES[name][:60] for name in ("old", "new")}
    for by in ("1%", "4%"):
        row = compare(values, significance=significance).no_worse("new", than="old", by=by).rows.row(0, named=True)
        assert (row["limit"] > -row["margin"]) == (row["outcome"] == "shown")


def two_valued(users, seed=0):
    """Return hits of two systems that differ for a tenth of the users."""
    rng = np.random.default_rng(seed)
    old = rng.random(users) < 0.2
    return {"old": old.astype(float), "new": np.where(rng.random(users) < 0.1, rng.random(users) < 0.2, old)}


@pytest.mark.parametrize("by", ["1%", "0.002"])
def test_a_gate_of_a_two_valued_metric_never_draws_the_signs_of_many_users(by, monkeypatch):
    def refuse(*_):
        raise AssertionError("signs were drawn")

    monkeypatch.setattr("cranfield.comparisons.significance.monte_carlo", refuse)
    values = two_valued(60_000)
    row = compare(values).no_worse("new", than="old", by=by).rows.row(0, named=True)
    d = values["new"] - values["old"]
    near = d.mean() - 1.645 * d.std() / np.sqrt(len(d))
    near = near / values["old"].mean() if by == "1%" else near
    assert row["limit"] == pytest.approx(near, rel=0.02)


@pytest.mark.parametrize(("significance", "most"), [("student", 8), ("permutation", 8), ("sign", 30)])
def test_a_limit_takes_few_tests(significance, most):
    values, calls = {name: VALUES[name] for name in ("old", "new")}, 0
    (sample,), _ = make_samples(as_scores(values), Averaging(by="user"), baseline="old")
    test = chosen_test([sample], significance, 0.05, 0)

    def counted(data):
        nonlocal calls
        calls += 1
        return test(data)

    gate([sample], counted, significance, 0.05, Margin(0.02, True))
    assert calls <= most


def test_a_limit_is_close_to_where_the_test_turns():
    values = two_valued(300)
    result = compare(values)
    limit = result.no_worse("new", than="old", by=0.05).rows["limit"].item()
    d, error = values["new"] - values["old"], (values["new"] - values["old"]).std(ddof=1) / np.sqrt(300)
    for away, rejects in ((1e-5, True), (-1e-5, False)):
        moved = compare({"new": d - limit + away * error, "zero": np.zeros(300)}).frame(detail=True)
        assert (moved["p"].item() / 2 < 0.05) == rejects


def test_where_lower_is_better_no_worse_is_no_larger():
    scores = replace(as_scores(VALUES), lower_is_better=(True,))
    result = compare(scores, significance="student")
    assert result.no_worse("bad", than="old", by="1%").outcome == "shown"
    assert result.no_worse("old", than="bad", by="1%").outcome == "worse"
    assert result.no_worse("bad", than="old", by=0.001).rows["gain"].item() > 0


def test_holm_counts_the_systems_of_a_metric_and_not_the_metrics():
    result = compare(VALUES, significance="student")
    alone = result.no_worse("new", than="old", by="2%").rows
    beside = result.no_worse(["new", "noisy", "bad"], than="old", by="2%").rows
    assert beside["p"][0] == alone["p"].item()
    assert beside["p_corrected"][0] == pytest.approx(3 * alone["p"].item())
    assert beside["limit"][0] < alone["limit"].item()
    assert (beside["limit"][0] > -0.02) == (beside["outcome"][0] == "shown")
    two = as_scores(VALUES)
    two = replace(two, metrics=("m", "k"), values=np.repeat(two.values, 2, axis=1), lower_is_better=(False, False))
    both = compare(two, significance="student").no_worse("new", than="old", by="2%")
    assert both.rows["p_corrected"].to_list() == [alone["p"].item()] * 2
    assert len(both.verdict) == 3
    assert compare(two, significance="student").no_worse("new", than="old", by="2%", metrics="k").rows.height == 1


def test_undecided_says_how_many_users_it_would_take():
    result = compare(VALUES, significance="student")
    row = result.no_worse("noisy", than="old", by="2%").rows.row(0, named=True)
    assert 300 < row["users_needed"] < 1e5
    assert f"about {row['users_needed']:,.0f} users" in str(result.no_worse("noisy", than="old", by="2%"))
    # With this many users, about four of five samples show it.
    rng, shown = np.random.default_rng(1), 0
    d = VALUES["noisy"] - 0.98 * VALUES["old"]
    for _ in range(300):
        drawn = rng.choice(d, int(row["users_needed"]))
        shown += drawn.mean() / (drawn.std(ddof=1) / np.sqrt(len(drawn))) > 1.645
    assert shown / 300 == pytest.approx(0.8, abs=0.08)
    never = compare(VALUES, significance="student").better("noisy", than="old")
    assert never.outcome in ("undecided", "worse")
    assert never.rows["users_needed"].item() == np.inf
    assert never.as_dict()["rows"][0]["users_needed"] is None


def _shown(worlds, systems, margin, relative):
    """Return in which share of worlds anything is shown where every system is worse by just the margin."""
    rng, shown = np.random.default_rng(2), 0
    for _ in range(worlds):
        user = rng.gamma(2.0, 0.5, 150)
        values = {"old": 0.3 * user * rng.gamma(4.0, 0.25, 150)}
        level = 0.3 * (1 - margin) if relative else 0.3
        for k in range(systems):
            values[f"new{k}"] = level * user * rng.gamma(4.0, 0.25, 150) - (0 if relative else margin)
        (sample,), _ = make_samples(as_scores(values), Averaging(by="user"), baseline="old")
        test = chosen_test([sample], "student", 0.05, 0)
        shown += (gate([sample], test, "student", 0.05, Margin(margin, relative)).rows["outcome"] == "shown").any()
    return shown / worlds


@pytest.mark.parametrize(("systems", "relative"), [(3, True)])
def test_a_system_worse_by_just_the_margin_passes_no_more_often_than_alpha(systems, relative):
    assert _shown(50, systems, 0.02, relative) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 50)


@pytest.mark.slow
@pytest.mark.parametrize(("systems", "relative"), [(1, True), (1, False), (3, True)])
def test_a_system_worse_by_just_the_margin_passes_as_often_as_alpha_in_many_worlds(systems, relative):
    assert 0.02 <= _shown(1500, systems, 0.02, relative) <= 0.065


@pytest.mark.parametrize("margin", ["", "much", "-1%", "0", "100%", True, "nan", "1 percent", "1%%", "%"])
def test_what_is_not_a_margin_is_refused(margin):
    with pytest.raises(SettingError, match="is not a margin; write"):
        compare(VALUES).no_worse("new", than="old", by=margin)


def test_a_gate_that_cannot_be_is_refused():
    result = compare(VALUES)
    with pytest.raises(SettingError, match="needs the system to measure against"):
        result.no_worse("new", by="1%")
    with pytest.raises(SettingError, match="there is no system 'knew'"):
        result.no_worse("knew", than="old", by="1%")
    with pytest.raises(SettingError, match="cannot be measured against itself"):
        result.better("old", than="old")
    with pytest.raises(SettingError, match="Tukey's test has no one-sided form"):
        compare(VALUES, significance="tukey(resamples=20)").better("new", than="old")
    with pytest.raises(SettingError, match="geometric means; give a share"):
        compare(VALUES, average="geometric").no_worse("new", than="old", by=0.01)
    with pytest.raises(SettingError, match="not above 0; give an amount"):
        compare({"a": [0.1, 0.2], "b": [0.0, 0.0]}).no_worse("a", than="b", by="1%")
    # A typo, 1 instead of 1%, would let everything through.
    with pytest.raises(SettingError, match="a margin of 1 lets every system through, since value of old is"):
        result.no_worse("new", than="old", by=1)
    with pytest.raises(SettingError, match=r"a margin of 0\.5 lets every system through, since value of b is 0\.5"):
        compare({"a": [0.25, 0.5], "b": [0.5, 0.5]}).no_worse("a", than="b", by=0.5)
    with pytest.raises(SettingError, match="holds no values by user"):
        replace(result, samples=()).no_worse("new", than="old", by="1%")


def test_equal_systems_are_no_worse_and_a_few_users_show_nothing():
    same = compare({"a": VALUES["old"], "b": VALUES["old"]})
    assert same.no_worse("a", than="b", by="1%").outcome == "shown"
    assert same.better("a", than="b").outcome == "undecided"
    few = compare({"a": [0.5, 0.4, 0.6], "b": [0.1, 0.2, 0.15]}).better("a", than="b")
    assert few.outcome == "undecided"
    assert "no limit can be found" in str(few)


def test_a_gate_without_users_or_with_one_is_undecided_and_has_no_limit():
    nobody = compare({"new": [0.5, np.nan], "old": [np.nan, 0.5]}, undefined="leave out").no_worse(than="old", by=0.01)
    assert str(nobody) == "value: undecided: there is no user for whom it is defined for new and old."
    single = compare({"new": [0.5], "old": [0.2]}).better(than="old")
    assert "is 0.3000 better than old (0.2000); no limit can be found (one-sided 95 % limit; p = 0.5; 1 user)" in str(
        single
    )


def test_a_gate_needs_a_metric():
    with pytest.raises(SettingError, match="a gate needs a metric"):
        compare({"new": [0.5, 0.4], "old": [0.2, 0.1]}).better(than="old", metrics=[])


def test_a_system_of_a_gate_may_be_spelled_or_displayed():
    result = compare({"item mean": VALUES["bad"], "old": VALUES["old"]}, significance="student")
    assert result.no_worse("average", than="old", by="2%").outcome == "worse"
    assert result.better("old", than="average").rows["baseline"].item() == "item mean"
    with pytest.raises(SettingError, match="there is no system 'avarage'"):
        result.better("old", than="avarage")


def test_where_no_number_of_users_would_show_it_the_number_for_equal_systems_is_named():
    rng = np.random.default_rng(0)
    old = rng.beta(2, 5, 300)
    result = compare({"new": old - 0.007 + rng.normal(0, 0.05, 300), "old": old}, significance="student")
    found = result.no_worse("new", than="old", by="1%")
    row = found.frame().row(0, named=True)
    assert (found.outcome, row["users_needed"]) == ("undecided", np.inf)
    margin = 0.01 * row["baseline_mean"]
    expected = users_needed(margin / result.power()["sd"][0], 2 * 0.05).item()
    assert row["users_if_equal"] == pytest.approx(expected, rel=0.02)
    assert f"if the two are equally good, it takes about {row['users_if_equal']:,.0f} (power 0.8)" in str(found)
    assert "equally good" not in str(result.better("new", than="old"))


def test_repetitions_that_agree_need_as_many_users_as_one_and_those_that_differ_more():
    rng = np.random.default_rng(0)
    old = rng.beta(2, 5, 300)
    new = old + rng.normal(0.002, 0.05, 300)
    needed = []
    for spread in (None, 1e-9, 0.0015):
        times = [
            as_scores({"new": new + shift * (spread or 0.0), "old": old})
            for shift in ((0.0,) if spread is None else (-1.0, 0.0, 1.0))
        ]
        result = compare(times if spread else times[0], **({} if spread else {"significance": "student"}))
        needed.append(result.better("new", than="old").rows["users_needed"].item())
    assert needed[1] == pytest.approx(needed[0], rel=0.02)
    assert needed[2] > 1.2 * needed[0]


@pytest.mark.parametrize("by", ["1%", 0.01])
def test_systems_that_are_equal_for_every_user_are_said_to_be_as_good(by):
    values = np.random.default_rng(0).random(200)
    found = compare({"new": values, "old": values.copy()}).no_worse("new", than="old", by=by)
    assert found.frame()["limit"].item() == 0.0
    assert "; it is at worst as good (one-sided 95 % limit; p < 0.0001; 200 users)." in str(found)
    better = str(compare({"new": values, "old": values.copy()}).better("new", than="old"))
    assert "undecided: new (" in better
    assert " is as good as old (" in better


@pytest.mark.parametrize("shift", [0.0, 0.001])
@pytest.mark.parametrize("users", [1, 2, 4, 5, 60])
def test_a_limit_without_spread_is_there_only_if_the_test_can_reject_at_all(users, shift):
    values = np.round(np.random.default_rng(0).random(users), 3)
    found = compare({"new": values + shift, "old": values}).no_worse("new", than="old", by=0.1).frame()
    assert np.isnan(found["limit"].item()) == (users < 5)  # 2^-4 is above 0.05
    assert (found["outcome"].item() == "shown") == (users >= 5)


@pytest.mark.parametrize("seed", [15, 17])
def test_the_range_of_the_users_needed_is_that_of_the_standardised_difference(seed):
    from scipy.optimize import brentq
    from scipy.stats import nct

    rng = np.random.default_rng(seed)
    values = {"new": 0.1 + rng.normal(size=200), "old": rng.normal(size=200)}
    result = compare(values, significance="student")
    t = result.frame(detail=True)["difference"].item() / result.frame(detail=True)["standard_error"].item()
    claimed = result.better("new", than="old")
    row = claimed.rows.row(0, named=True)
    expected = []
    for chance in (0.1, 0.9):  # P(T ≥ t) at the end of the interval
        shift = brentq(lambda shift, chance=chance: nct.sf(t, 199, shift) - chance, -6, 12)
        expected.append(users_needed(shift / np.sqrt(200), 0.1).item() if shift > 0 else np.inf)
    assert [row["users_needed_upper"], row["users_needed_lower"]] == pytest.approx(expected, rel=0.01)
    assert row["users_needed_lower"] < row["users_needed"] < row["users_needed_upper"]
    end = "or more" if expected[0] == np.inf else f"to {expected[0]:,.0f}"
    assert f"a range of {row['users_needed_lower']:,.0f} {end} (80 % interval)" in str(claimed)
    parts = [as_scores({name: column + 0.02 * k for name, column in values.items()}) for k in range(3)]
    crossed = compare(parts).better("new", than="old").rows.row(0, named=True)
    assert crossed["users_needed_lower"] < crossed["users_needed"] < crossed["users_needed_upper"]
