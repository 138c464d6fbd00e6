"""Verdicts by group, and the test of whether groups differ."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import cranfield as cf
from cranfield.comparisons import compare_segments
from cranfield.comparisons.interactions import divided_anew, interactions
from cranfield.comparisons.samples import as_scores
from cranfield.measures import Averaging, Segments
from cranfield.measures.joining import join_folds

N = 240


def _segments(effects, seed=0, systems=("a", "b")):
    """Make scores of systems for users in groups, of which each has its own mean difference."""
    rng = np.random.default_rng(seed)
    names = np.repeat(list(effects), N)
    base = rng.random(len(names))
    shift = np.array([effects[name] for name in names])
    values = {system: base + s * (shift + 0.1 * rng.normal(size=len(names))) for s, system in enumerate(systems)}
    scores = as_scores(values)
    return scores.segments(dict(enumerate(names.tolist()))), names


def test_the_interaction_of_users_is_welchs_test():
    from scipy import stats

    segments, names = _segments({"x": 0.1, "y": -0.1, "z": 0.02})
    found = cf.compare_segments(segments, significance="student").interactions
    difference = segments.scores.values[0, 0] - segments.scores.values[1, 0]
    for row in found.iter_rows(named=True):
        inside, outside = difference[names == row["group"]], difference[names != row["group"]]
        expected = stats.ttest_ind(inside, outside, equal_var=False)
        assert row["p"] == pytest.approx(expected.pvalue)
        assert row["inside"] == pytest.approx(inside.mean())
        assert row["test"] == "Welch's t"


def test_the_interaction_of_items_is_paired_by_user():
    from scipy import stats

    rng = np.random.default_rng(1)
    users, items = range(40), ["x", "y", "z"]
    test = cf.Ratings.of([u for u in users for _ in items], items * len(users))
    runs = {name: {u: [items[i] for i in rng.permutation(3)] for u in users} for name in ("a", "b")}
    segments = cf.measure_segments(runs, test, "RR", by={"item": items, "group": ["old", "new", "new"]})
    (row, _) = cf.compare_segments(segments, significance="student").interactions.iter_rows(named=True)
    new, old = (segments.group(name).values[:, 0] for name in ("new", "old"))
    expected = stats.ttest_rel(new[0] - new[1], old[0] - old[1])
    assert (row["group"], row["test"]) == ("new", "paired t")
    assert row["p"] == pytest.approx(expected.pvalue)


def test_interactions_are_corrected_over_groups_and_pairs():
    from cranfield.comparisons.p_values import holm

    segments, _ = _segments({"x": 0.1, "y": 0.0, "z": 0.02}, systems=("a", "b", "c"))
    found = cf.compare_segments(segments, significance="student").interactions
    assert len(found) == 9
    assert found["p_corrected"].to_list() == pytest.approx(holm(found["p"].to_numpy()).tolist())


def test_of_two_groups_one_hypothesis_is_counted():
    segments, _ = _segments({"x": 0.1, "y": 0.05})
    found = cf.compare_segments(segments, significance="student").interactions
    assert found["p"][0] == pytest.approx(found["p"][1])
    assert found["p_corrected"].to_list() == pytest.approx(found["p"].to_list())


def test_a_group_in_which_the_order_turns_round_is_named_with_its_test():
    segments, _ = _segments({"light": 0.2, "heavy": -0.2})
    found = cf.compare_segments(segments, significance="student")
    assert found.interactions["turns"].all()
    (first, second) = found.reversals.shown
    assert {(fact.group, fact.ahead) for fact in (first, second)} == {("heavy", ("a", "b")), ("light", ("b", "a"))}
    assert first.p_corrected < 0.0001
    assert first.test == "Welch's t"
    assert found.verdict[0].startswith("By given, a leads b in heavy, not elsewhere (value, p < 0.0001)")


def test_a_change_of_places_that_chance_can_explain_is_said_to_be_one():
    segments, _ = _segments({"light": 0.006, "heavy": -0.006}, seed=3)
    found = cf.compare_segments(segments, significance="student").reversals
    assert (found.shown, found.by_chance) == ((), 2)
    assert str(found).startswith("By given, no order is shown to be reversed in a group (smallest p 0.")


def test_where_the_order_is_the_same_everywhere_that_is_said():
    segments, _ = _segments({"light": 0.2, "heavy": 0.3})
    found = cf.compare_segments(segments, significance="student")
    assert found.verdict[0] == "By given, systems have the same order in both groups."


def test_the_verdict_of_a_group_is_that_of_its_own_users():
    segments, _ = _segments({"light": 0.2, "heavy": -0.2})
    found = cf.compare_segments(segments, significance="student")
    alone = cf.compare(segments.group("light"), significance="student")
    assert f"given, light ({N} users): {alone.verdict[0]}" in found.verdict
    assert found.frame(detail=True).filter(group="light")["p"].to_list() == alone.frame(detail=True)["p"].to_list()


def test_a_group_has_the_sentence_of_the_first_metric_alone():
    test = cf.Ratings.of([user for user in range(30) for _ in range(2)], ["x", "y"] * 30)
    runs = {"a": {user: ["x", "n"] for user in range(30)}, "b": {user: ["n", "y"] for user in range(30)}}
    scores = cf.measure(runs, test, ["RR", "nDCG@2"])
    said = cf.compare_segments(scores.segments({user: f"g{user % 2}" for user in range(30)})).verdict
    assert [("RR: " in sentence, "nDCG@2: " in sentence) for sentence in said[1:3]] == [(True, False)] * 2


def test_that_a_system_was_trained_once_is_said_once():
    segments, _ = _segments({"light": 0.2, "heavy": -0.2})
    drawn = replace(segments, scores=replace(segments.scores, trained_once=("a",)))
    said = cf.compare_segments(drawn, significance="student").verdict
    assert sum("trained once" in sentence for sentence in said) == 1
    assert said[-1].startswith("a draws at random and was trained once")


def test_a_group_without_any_value_has_no_verdict():
    scores = as_scores({"a": [0.1, 0.2, np.nan], "b": [0.3, 0.1, np.nan]})
    segments = scores.segments({0: "x", 1: "x", 2: "y"})
    said = cf.compare_segments(segments, undefined="leave out").verdict
    assert "given, y (0 users): nothing can be said, since nothing is measured there." in said


def test_weighted_means_are_tested_as_they_are_reported():
    test = cf.Ratings.of([1, 1, 1, 2, 3, 3, 4, 4], list("xyzxxyyz"))
    runs = {"a": {u: ["x", "y"] for u in range(1, 5)}, "b": {u: ["z", "x"] for u in range(1, 5)}}
    segments = cf.measure(runs, test, "P@1").segments({1: "l", 2: "l", 3: "r", 4: "r"})
    found = cf.compare_segments(segments, average="weighted(by=judged)")
    means = segments.frame("weighted(by=judged)").filter(group="l")["mean"].to_list()
    assert found.interactions["inside"][0] == pytest.approx(means[0] - means[1])


def test_a_group_without_weight_is_left_out():
    test = cf.Ratings.of([1, 2, 3, 4], list("xyxy"), [5, 5, 1, 1])
    runs = {"a": {key: ["x"] for key in range(1, 5)}, "b": {key: ["y"] for key in range(1, 5)}}
    segments = cf.measure(runs, test, "nDCG@1", threshold=4).segments({1: "l", 2: "l", 3: "r", 4: "r"})
    found = cf.compare_segments(segments, average="weighted(by=relevant)")
    assert "given, r (2 users): nothing can be said" in found.verdict[2]
    assert len(found.interactions) == 0
    assert found.reversals.sentence == "By given, systems have the same order in both groups."


def _differences(rng, kind, shape):
    """Draw differences of users that all have the same distribution."""
    some = rng.random(shape) < 0.1
    return {
        "normal": rng.normal(size=shape),
        "skewed": rng.exponential(size=shape),
        "few differ": np.where(some, rng.normal(size=shape), 0.0),
        "few gain": np.where(some, rng.exponential(size=shape), 0.0),
        "two values": some.astype(float),
    }[kind]


@pytest.mark.parametrize("kind", ["normal", "skewed", "few differ", "few gain", "two values"])
@pytest.mark.parametrize(
    ("n", "worlds"), [(3, 150), (10, 150), *(pytest.param(n, 4000, marks=pytest.mark.slow) for n in (2, 3, 5, 10, 50))]
)
def test_the_interaction_of_a_small_group_keeps_its_level(kind, n, worlds):
    rng = np.random.default_rng(n)
    p = divided_anew(_differences(rng, kind, (worlds, n)), _differences(rng, kind, (worlds, 120)))
    for alpha in (0.01, 0.05):
        assert (p < alpha).mean() <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / worlds)
    if kind == "normal" and worlds > 1000:
        assert (p < 0.05).mean() >= 0.035  # nor is it too careful


def test_the_interaction_of_a_small_group_is_a_permutation_of_welchs_t():
    """All 120 ways of choosing 3 of 10 users, in a loop."""
    rng = np.random.default_rng(3)
    few, many = rng.normal(1, 1, 3), rng.normal(size=7)
    values = np.append(few, many)
    found = [
        abs(stats.ttest_ind(values[list(side)], np.delete(values, list(side)), equal_var=False).statistic)
        for side in itertools.combinations(range(10), 3)
    ]
    exact = np.mean(np.array(found) >= found[0] - 1e-12)
    for sides in ((few, many), (many, few)):
        assert divided_anew(sides[0][None], sides[1][None])[0] == pytest.approx(exact, abs=0.015)
    missing = divided_anew(np.append(few, np.nan)[None], np.append(np.nan, many)[None])[0]
    assert missing == pytest.approx(exact, abs=0.015)


def test_a_small_group_is_named_with_its_test_and_one_user_is_not_tested():
    rng = np.random.default_rng(1)
    scores = as_scores({"a": rng.random(300), "b": rng.random(300)})
    groups = {user: "one" if user == 0 else "few" if user < 40 else "many" for user in range(300)}
    found = cf.compare_segments(scores.segments(groups)).interactions
    tests = dict(found.select("group", "test").rows())
    assert tests["few"] == tests["many"] == "permutation of Welch's t"
    assert np.isnan(found.filter(group="one")["p"].item())


@pytest.mark.slow
def test_false_alarms_of_the_interaction_are_as_many_as_alpha_allows():
    hits = 0
    for seed in range(100):
        segments, _ = _segments({"x": 0.0, "y": 0.0}, seed=seed)
        hits += bool(interactions(segments, Averaging(), alpha=0.05)["significant"][0])
    assert hits <= 12  # 5 are expected


def test_everything_is_ready_for_json():
    import json

    segments, _ = _segments({"light": 0.2, "heavy": -0.2})
    told = json.loads(json.dumps(cf.compare_segments(segments, significance="student").as_dict()))
    assert told["of"] == "users"
    assert {row["group"] for row in told["averages"]} == {"light", "heavy"}
    assert "<b>" in cf.compare_segments(segments, significance="student")._repr_html_()


@pytest.mark.parametrize("kind", ["users", "items"])
def test_the_spread_between_repetitions_is_in_the_test_of_an_interaction(kind):
    """Two systems whose difference inside a group jumps from repetition to repetition, by the same for all users."""
    rng, users, times = np.random.default_rng(2), 60, 3
    jumps = np.array([0.3, -0.3, 0.0])
    parts = []
    for jump in jumps:
        values = {"a": rng.normal(0.5, 0.05, users), "b": rng.normal(0.5, 0.05, users)}
        values["a"][:30] += 0.1 + jump
        scores = replace(as_scores(values), covered=np.ones((2, users), dtype=bool))
        group = np.repeat([0, 1], 30).astype(np.int16)
        codes = np.arange(users, dtype=np.int32) % (30 if kind == "items" else users)
        parts.append(Segments("g", kind, replace(scores, users=codes, groups=group, group_names=("in", "out"))))
    alone, crossed_ = Segments.join(parts), Segments.join(parts, range(times))
    assert alone.scores.repetitions is None
    plain, spread = (compare_segments(segments, significance="student").interactions for segments in (alone, crossed_))
    assert plain["interaction"].to_list() == pytest.approx(spread["interaction"].to_list())
    assert plain["significant"].all()
    assert not spread["significant"].any()
    # The means of the repetitions vary by 0.3, so the error is close to 0.3 / √3.
    assert spread["standard_error"][0] == pytest.approx(0.3 / np.sqrt(3), rel=0.05)
    assert spread["test"][0].endswith(", users crossed with repetitions")


def test_a_group_of_few_users_in_several_repetitions_is_not_tested():
    rng, parts = np.random.default_rng(2), []
    for _ in range(3):
        scores = as_scores({"a": rng.random(60), "b": rng.random(60)})
        groups = np.where(np.arange(60) < 9, 0, 1).astype(np.int16)
        parts.append(Segments("g", "users", replace(scores, groups=groups, group_names=("few", "many"))))
    found = compare_segments(Segments.join(parts, range(3)), significance="student")
    assert np.isnan(found.interactions["p"].to_numpy()).all()
    assert not found.interactions["significant"].any()


def _changing(rng, users=60, times=3):
    """Scores of two equally good systems, in groups that users change between repetitions, as light users may."""
    user, parts = rng.normal(0, 0.1, (2, users)), []
    for _ in range(times):
        values = user + rng.normal(0, 0.05, (2, users)) + rng.normal(0, 0.01, (2, 1))
        groups = np.where(np.arange(users) + rng.integers(0, 20, users) < 40, "light", "heavy")
        parts.append((as_scores(dict(zip("ab", values))), groups))
    names = np.concatenate([groups for _, groups in parts])
    scores = replace(
        join_folds([part for part, _ in parts], range(times)),
        groups=(names == "light").astype(np.int16),
        group_names=("heavy", "light"),
    )
    return Segments("activity", "users", scores)


def test_groups_that_users_change_between_repetitions_are_tested_too():
    rng, worlds = np.random.default_rng(7), 30
    p = np.array([interactions(_changing(rng), Averaging(), alpha=0.05)["p"][0] for _ in range(worlds)])
    assert not np.isnan(p).any()
    assert (p < 0.05).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / worlds)
    assert (p < 0.5).mean() > 0.3
    assert cf.compare_segments(_changing(rng), significance="student").interactions["test"][0].startswith("Welch's t")


def test_too_few_users_for_a_test_of_the_order_are_said_to_be_so():
    scores = as_scores({"a": [0.1, 0.9, 0.3], "b": [0.2, 0.8, 0.1]})
    said = cf.compare_segments(scores.segments({0: "x", 1: "y", 2: "y"})).verdict[0]
    assert said == "By given, no order is shown to be reversed in a group (too few users to test it)."


def test_the_table_and_the_verdict_of_a_group_say_how_many_users_are_compared_by_each_metric():
    """One system has lists for three users of five, so novelty is compared over these, and precision over all."""
    users = range(10)
    test = cf.Ratings.of(list(users), ["x"] * 10)
    runs = {"a": {u: ["x", "y"] for u in users}, "b": {u: ["y", "x"] for u in users if u % 5 < 3}}
    train = cf.Ratings.of([20, 20, 21], ["x", "y", "x"])
    segments = cf.measure(runs, test, ["P@1", "EPC@1"], train=train).segments({u: f"g{u // 5}" for u in users})
    found = cf.compare_segments(segments)
    assert found.frame(detail=True).filter(group="g0")["n"].to_list() == [5, 3]
    assert [row[2].text for row in found.table().rows] == ["3 to 5"] * 4
    assert found.verdict[1].startswith("given, g0 (3 to 5 users): ")
    alone = cf.compare_segments(replace(segments, scores=segments.scores.only(["EPC@1"])))
    assert alone.verdict[1].startswith("given, g0 (3 users): ")


@pytest.mark.parametrize("correction", [None, "holm"])
def test_verdicts_in_groups_are_corrected_over_groups(correction):
    segments, _ = _segments({"x": 0.02, "y": 0.0, "z": 0.01}, systems=("a", "b", "c"))
    found = compare_segments(segments, significance="student", correction=correction)
    for name, part in found.comparisons.items():
        alone = cf.compare(segments.group(name), alpha=0.05 / 3, significance="student", correction=correction)
        rows, theirs = part.frame(detail=True), alone.frame(detail=True)
        for column in ("p", "lower", "upper", "level", "significant"):
            assert rows[column].to_list() == theirs[column].to_list()
        assert rows["p_corrected"].to_list() == np.minimum(3 * theirs["p_corrected"].to_numpy(), 1).tolist()
        assert rows["significant"].to_list() == (rows["p_corrected"] < 0.05).to_list()
        assert part.alpha == 0.05
    assert any("for the pairs of systems and for the number of groups (3)" in note for note in found.notes)


def test_without_a_correction_groups_are_not_corrected_and_a_note_says_so():
    segments, _ = _segments({"x": 0.02, "y": 0.0})
    found = compare_segments(segments, significance="student", correction="none")
    for part in found.comparisons.values():
        assert part.frame(detail=True)["p_corrected"].to_list() == part.frame(detail=True)["p"].to_list()
    assert any("within a group are not corrected" in note for note in found.notes)
    tukey = compare_segments(segments, significance="tukey")
    assert (
        tukey.frame(detail=True)["p_corrected"].to_list()
        == np.minimum(2 * tukey.frame(detail=True)["p"].to_numpy(), 1).tolist()
    )


def test_a_group_without_values_does_not_count():
    segments, names = _segments({"x": 0.02, "y": 0.0, "z": 0.0})
    values = segments.scores.values.copy()
    values[:, :, names == "z"] = np.nan
    segments = replace(segments, scores=replace(segments.scores, values=values))
    found = compare_segments(segments, significance="student", undefined="leave out")
    assert found.comparisons["z"] is None
    both = found.frame(detail=True)
    assert both["p_corrected"].to_list() == np.minimum(2 * both["p"].to_numpy(), 1).tolist()


def test_a_level_that_is_no_share_is_refused():
    segments, _ = _segments({"x": 0.02, "y": 0.0, "z": 0.0})
    with pytest.raises(cf.SettingError, match=r"alpha=1\.5"):
        compare_segments(segments, alpha=1.5)
