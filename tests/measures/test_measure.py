from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.facts import scores as scores_facts
from cranfield.measures import measure

TEST = cf.Ratings.of(
    ["ann", "ann", "ann", "bob", "bob", "cat"], ["v", "w", "x", "w", "y", "z"], [5, 2, 4, 4, 3, 2], None
)
RUNS = {
    "full": {"ann": ["x", "q", "v"], "bob": ["y", "w"], "cat": ["z"]},
    "part": {"ann": ["q", "v"], "zed": ["v"]},
}


def test_scores_are_labelled_and_in_the_order_given():
    scores = measure(RUNS, TEST, ["P@2", "RR"], threshold=4)
    assert scores.systems == ("full", "part")
    assert scores.metrics == ("P@2", "RR")
    assert scores.values.shape == (2, 2, 3)
    assert scores.user_ids.ids(scores.users).to_list() == ["ann", "bob", "cat"]
    assert scores.values[0, 1, :2].tolist() == [1.0, 0.5]
    assert np.isnan(scores.values[0, 1, 2]), "cat has no relevant item"


@pytest.mark.parametrize("system", RUNS)
def test_of_one_system_full_is_coverage_times_reduced(system):
    scores = measure({system: RUNS[system]}, TEST, ["P@2", "RR"], threshold=4)
    full = scores.average(coverage="full")
    reduced = scores.average(coverage="reduced")
    assert full == pytest.approx(scores.user_coverage[:, None] * reduced)
    assert scores.user_coverage == pytest.approx([1.0 if system == "full" else 1 / 3])


def test_reduced_averages_of_several_systems_are_over_the_users_that_all_serve():
    scores = measure(RUNS, TEST, ["P@2", "RR"], threshold=4)
    common = scores.covered.all(axis=0)
    assert common.sum() == 1
    assert scores.average(coverage="reduced") == pytest.approx(scores.values[:, :, common].mean(axis=2))
    assert scores.average(coverage="reduced") == pytest.approx(cf.compare(scores, coverage="reduced").averages)
    assert "over the 1 of 3 users that both systems serve" in scores.table(coverage="reduced").caption


def test_an_undefined_value_is_zero_or_left_out_as_asked():
    scores = measure(RUNS, TEST, "RR", threshold=4)
    assert scores.average(undefined="zero")[0, 0] == pytest.approx(0.5)
    assert scores.average(undefined="leave out")[0, 0] == pytest.approx(0.75)
    rows = scores.frame(undefined="leave out").row(0, named=True)
    assert (rows["lists"], rows["undefined"]) == (2, 1)


def test_the_frame_is_tidy_with_interval_coverage_and_unjudged_share():
    frame = measure(RUNS, TEST, ["P@2", "nDCG@2"], threshold=4).frame()
    assert frame.shape == (4, 14)
    row = frame.row(0, named=True)
    assert row["lower"] <= row["mean"] <= row["upper"]
    assert row["coverage"] == 1.0
    assert row["filled"] == pytest.approx(5 / 6)
    assert row["unjudged"] == pytest.approx(1 / 5)
    assert row["item_coverage"] == pytest.approx(6 / 6)


def test_what_happened_to_a_run_is_counted_and_said():
    scores = measure(RUNS, TEST, ["P@2"], threshold=4)
    assert scores.counts["part"]["users without test ratings"] == 1
    assert scores.counts["part"]["test users without a list"] == 2
    told = " ".join(map(str, scores.notes))
    assert "part: 2 test users without a list" in told
    assert "1 of 3 test users have no relevant item" in told


def test_the_threshold_follows_from_the_ratings_unless_it_is_none_or_a_number():
    automatic = measure(RUNS, TEST, "Recall")
    assert automatic.step.settings["threshold"] == 4.0
    assert np.array_equal(automatic.values, measure(RUNS, TEST, "Recall", threshold=4).values, equal_nan=True)
    assert "relevant from 4" in automatic.table().caption
    any_rating = measure(RUNS, TEST, "Recall", threshold=None)
    assert any_rating.values[0, 0].tolist() == pytest.approx([2 / 3, 1.0, 1.0])
    assert any_rating.step.settings["threshold"] == 1.0


def test_relevance_judgments_are_relevant_from_1_as_in_trec_eval():
    graded = {"ann": {"x": 1, "y": 3, "z": 0}}
    assert measure({"a": {"ann": ["x", "y"]}}, graded, "P@2").values.item() == 1.0


def test_implicit_feedback_needs_no_threshold():
    test = cf.Ratings.of(["ann"], ["v"])
    scores = measure({"a": {"ann": ["v"]}}, test, "P@1")
    assert (scores.notes, scores.values.item()) == ((), 1.0)


def test_the_caption_says_which_metrics_the_threshold_is_of():
    scores = measure(RUNS, TEST, ["P@2", "nDCG@2", "nDCG(gain=exp)@2"], threshold=4)
    said = "relevant from 4 (P); nDCG: gain = rating; nDCG(gain=exp): gain = 2^rating − 1"
    assert said in scores.table().caption
    two = measure({**RUNS, "other": {"ann": ["v"]}}, TEST, ["P@2", "nDCG@2"], threshold=4)
    assert "relevant from 4 (P); nDCG: gain = rating" in cf.compare(two).caption


def test_condensed_lists_are_those_without_unjudged_items():
    condensed = measure(RUNS, TEST, "P@2", threshold=4, lists="condensed")
    alone = measure(RUNS, TEST, "P(condensed=true)@2", threshold=4)
    assert condensed.values[0, 0, :2].tolist() == [1.0, 0.5]
    assert np.array_equal(condensed.values, alone.values, equal_nan=True)
    assert np.all(condensed.unjudged[0] == 0.0)


def test_integer_and_text_ids_meet():
    test = cf.Ratings.of([1, 2], [10, 20])
    scores = measure({"a": {"1": {"10": 1.0}, "2": {"9": 1.0}}}, test, "P@1")
    assert scores.values[0, 0].tolist() == [1.0, 0.0]


def test_ties_across_the_cut_off_are_reported():
    test = cf.Ratings.of(["u", "v"], ["a", "b"])
    run = {"u": {"a": 1.0, "b": 1.0}, "v": {"a": 2.0, "b": 1.0}}
    notes = measure({"s": run}, test, ["P@1"]).notes
    assert notes == (scores_facts.OfRuns(scores_facts.TiedScores(((1, 0.5),)), ("s",), every=False),)


def test_averaged_ties_are_an_expectation_and_metrics_without_one_are_named():
    test = cf.Ratings.of(["u"], ["a"])
    scores = measure({"s": {"u": {"a": 1.0, "b": 1.0}}}, test, ["P@1", "bpref"], ties="average")
    assert scores.values[0, 0].tolist() == [0.5]
    assert any("not averaged" in note and "bpref" in note for note in map(str, scores.notes))


def test_any_frame_and_any_test_source_will_do(tmp_path):
    pl.DataFrame({"user": ["ann"], "item": ["v"], "rating": [5]}).write_csv(tmp_path / "test.csv")
    run = pl.DataFrame({"user": ["ann", "ann"], "item": ["v", "w"], "score": [0.2, 0.9]})
    for frame in (run, run.to_pandas(), run.to_arrow()):
        scores = measure({"mine": frame}, tmp_path / "test.csv", "RR", threshold=4)
        assert scores.values[0, 0].tolist() == [0.5]


def test_one_user_and_one_system_is_enough():
    scores = measure({"s": {"u": ["a"]}}, cf.Ratings.of(["u"], ["a"]), "P@1")
    row = scores.frame().row(0, named=True)
    assert row["mean"] == 1.0
    assert np.isnan(row["lower"])
    assert "*" not in str(scores)


@pytest.mark.parametrize(
    ("runs", "test", "metrics", "message"),
    [
        ([], TEST, ["P@1"], "no run"),
        (RUNS, cf.Ratings.of([], []), ["P@1"], "no rating"),
        (RUNS, TEST, [], "no metric"),
        (RUNS, TEST, ["Q@1"], "no metric 'Q'"),
        (RUNS, TEST, ["P(k=3)@1"], "no parameter 'k'"),
        (RUNS, TEST, ["P(rel=high)@1"], "not a number"),
        (RUNS, TEST, ["P@0"], "not a positive whole number"),
        (RUNS, TEST, ["nDCG(gain=expo)@1"], "did you mean 'exp'"),
        (RUNS, TEST, ["Rprec@5"], "which Rprec does not take"),
        (RUNS, TEST, ["P@3000000000"], "the cut-off of P@3000000000 is too large"),
        (RUNS, TEST, None, "no metric"),
        (RUNS, TEST, ["RBP(p=2)"], "give a number below 1"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(runs, test, metrics, message):
    with pytest.raises(cf.CranfieldError, match=message):
        measure(runs, test, metrics)


def test_a_cut_off_beyond_every_list_costs_nothing():
    deep = measure(RUNS, TEST, ["nDCG@2000000000", "nDCG@100"])
    assert np.array_equal(deep.values[:, 0], deep.values[:, 1], equal_nan=True)


@pytest.mark.parametrize("setting", [{"lists": "no"}, {"bounds": 1}, {"ties": 1}, {"threshold": "4"}])
def test_a_setting_of_another_type_is_refused(setting):
    with pytest.raises(cf.SettingError, match=next(iter(setting))):
        measure(RUNS, TEST, ["P@1"], **setting)


@pytest.mark.parametrize("setting", [{"level": "high"}, {"level": 1}, {"seed": -1}, {"seed": None}])
def test_an_interval_that_cannot_be_made_is_refused(setting):
    with pytest.raises(cf.SettingError, match=next(iter(setting))):
        measure(RUNS, TEST, ["P@1"]).frame(interval="bootstrap", **setting)


def test_the_level_of_an_interval_is_said_as_it_was_asked_for():
    assert measure(RUNS, TEST, "P@1").frame(level=0.995)["interval"][0] == "99.5% Student's t"


def test_how_ties_were_broken_is_recorded_as_the_runs_were_read():
    runs = cf.read_runs({"a": {"ann": {"x": 1.0, "y": 1.0}}}, ties="average")
    assert measure(runs, TEST, "P@1").step.settings["ties"] == "average"


def test_two_runs_of_one_name_are_refused():
    one = cf.read_run({"ann": ["v"]}, name="a")
    with pytest.raises(cf.InputError, match="two systems are called 'a'"):
        measure([one, one], TEST, "P@1")


def test_the_best_is_marked_also_where_lower_is_better():
    scores = measure(RUNS, TEST, ["P@2", "RBPresidual(p=0.5)@2"], threshold=4)
    text = scores.table().latex()
    assert r"\textbf{0.3333}" in text
    assert scores.lower_is_better == (False, True)


def test_per_user_values_come_with_ids():
    frame = measure(RUNS, TEST, ["P@2"], threshold=4).per_user()
    assert frame.columns == ["system", "metric", "user", "value", "covered"]
    assert frame.filter(system="part", user="bob").row(0) == ("part", "P@2", "bob", 0.0, False)


def test_some_metrics_can_be_taken_out_of_scores():
    scores = measure(RUNS, TEST, ["P@2", "RR"], threshold=4)
    assert scores.only(["RR"]).frame()["mean"].to_list() == scores.frame().filter(metric="RR")["mean"].to_list()
    with pytest.raises(cf.SettingError, match="was not measured"):
        scores.only(["AP"])


def test_bounds_are_the_averages_if_unjudged_items_were_irrelevant_or_relevant():
    scores = measure(RUNS, TEST, ["P@2", "Unjudged@2"], threshold=4, bounds=True)
    rows = {(row["system"], row["metric"]): row for row in scores.frame(undefined="leave out").iter_rows(named=True)}
    row = rows["full", "P@2"]
    assert row["least"] <= row["mean"] <= row["most"]
    assert (row["least"], row["most"]) == pytest.approx((0.5, 0.75))
    assert rows["full", "Unjudged@2"]["most"] is None
    assert "(0.5000–0.7500)" in scores.table(undefined="leave out").text()


def test_scores_taken_for_predicted_ratings_are_said():
    run = cf.read_run({"ann": {"v": 4.5, "x": 3.0}}, name="a")
    notes = measure(run, TEST, "RMSE").notes
    assert scores_facts.OfRuns(scores_facts.ScoresAsRatings(("RMSE",)), ("a",), every=False) in notes


def test_what_holds_for_every_run_is_said_once():
    runs = {"a": {"ann": ["v"], "zed": ["v"]}, "b": {"ann": ["w"], "zed": ["v"]}}
    note = scores_facts.OfRuns(scores_facts.ListCount("users without test ratings", 1), ("a", "b"), every=True)
    assert measure(runs, TEST, "P@1", threshold=4).notes.count(note) == 1


def test_one_relevant_lists_are_averaged_by_user_or_as_in_equation_1_of_bellogin():
    world = cf.simulate.world(80, 60, 1_600, seed=2)
    split = cf.splits.random(world.ratings, train=0.7, seed=2)
    runs = cf.recommend(split, ["popularity", "random"], relevant="one", nonrelevant=20, threshold=4, seed=5)
    scores = measure(runs, split.test, ["P@5", "RR"], threshold=4)
    positive = split.test.keep(split.test.values >= 4)
    assert scores.n_lists == len(positive)
    # 1RP@n = (1/|PR_test|) Σ_u Σ_r P@n(T_u^r), and P@n of a list with one relevant item is 1/n within the first n.
    for s, run in enumerate(runs):
        inside = (run.ranks >= 1) & (run.ranks <= 5)
        assert scores.average(by="list")[s, 0] == pytest.approx(inside.sum() / 5 / len(positive))
    by_user = scores.average()[0, 0]
    users, values = scores.users, scores.values[0, 0]
    assert by_user == pytest.approx(np.mean([values[users == u].mean() for u in np.unique(users)]))


def test_one_relevant_lists_meet_whatever_the_order_of_their_rows():
    test = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], [5, 4, 5])
    rows = {"user": ["ann", "ann", "bob"], "item": ["x", "y", "x"], "rank": [1, 2, 4], "length": [9, 9, 9]}
    frame = pl.DataFrame(rows)
    runs = {"sorted": frame, "shuffled": frame[[2, 1, 0]]}
    assert measure(runs, test, "RR", threshold=4).values[:, 0].tolist() == [[1.0, 0.5, 0.25]] * 2
    assert measure({"alone": frame[[2, 0, 1]]}, test, "RR", threshold=4).values[0, 0].tolist() == [1.0, 0.5, 0.25]


def test_one_relevant_lists_must_be_those_of_the_test_set_and_of_the_first_run():
    test = cf.Ratings.of(["ann", "ann"], ["x", "y"], [5, 4])
    frame = pl.DataFrame({"user": ["ann", "ann"], "item": ["x", "y"], "rank": [1, 2], "length": [9, 9]})
    with pytest.raises(cf.InputError, match="the run b has other lists than a"):
        measure({"a": frame[:1], "b": frame}, test, "RR", threshold=4)
    with pytest.raises(cf.InputError, match="the run b has other lists than a"):
        measure({"a": frame, "b": frame[:1]}, test, "RR", threshold=4)
    with pytest.raises(cf.InputError, match="1 one-relevant lists whose item is not in the test set"):
        measure({"a": frame.with_columns(item=pl.Series(["x", "z"]))}, test, "RR", threshold=4)
    with pytest.raises(cf.InputError, match="the run a has several lists for one user and item"):
        measure({"a": frame[[0, 1, 0]]}, test, "RR", threshold=4)


def test_a_metric_asked_for_twice_under_any_name_is_measured_once():
    scores = cf.measure({"mine": {"ann": ["x"]}}, {"ann": {"x": 1}}, ["P@1", "Precision@1", "RR", "P@1"])
    assert scores.metrics == ("P@1", "RR")


def test_a_metric_of_ones_own_that_asks_for_the_cut_off_needs_one():
    @cf.metric("Deep")
    def deep(judged, *, cutoff):
        return judged.n_hits / cutoff

    run, test = {"mine": {"ann": ["x"]}}, {"ann": {"x": 1}}
    assert cf.measure(run, test, "Deep@2").values.tolist() == [[[0.5]]]
    with pytest.raises(cf.SettingError, match="Deep needs a cut-off; write Deep@10"):
        cf.measure(run, test, "Deep")


@pytest.mark.parametrize("wrong", [lambda judged: 0.5, lambda judged: [1.0] * 7, lambda judged: ["a", "b", "c"]])
def test_a_metric_of_ones_own_must_return_a_number_for_each_list(wrong):
    cf.metric("Wrong")(wrong)
    with pytest.raises(cf.SettingError, match="return a number for each"):
        measure(RUNS, TEST, "Wrong")


def test_a_metric_of_ones_own_needs_a_name_that_can_be_spelled_and_the_parameters_it_asks_for():
    with pytest.raises(cf.SettingError, match="cannot be the name"):
        cf.metric("Mine@3")
    cf.metric("Steep")(lambda judged, *, k: judged.n_hits**k)
    with pytest.raises(cf.SettingError, match="needs k; write Steep"):
        measure(RUNS, TEST, "Steep")


def test_judged_lists_measured_without_a_threshold_record_their_own():
    test = cf.Ratings.of(["u", "u"], ["a", "b"], [5, 3])
    judged = cf.judge({"s": {"u": ["b", "a"]}}, test, threshold=4)
    scores = cf.measure(judged, None, "P@1")
    assert (scores.step.settings["threshold"], scores.values.item()) == (4.0, 0.0)
    lower = cf.measure(judged, None, "P@1", threshold=3)
    assert (lower.step.settings["threshold"], lower.values.item()) == (3.0, 1.0)


def test_the_usual_threshold_follows_from_training_and_test_ratings_as_in_an_experiment():
    test = cf.Ratings.of(["ann", "bob"], ["x", "y"], [3, 2])
    train = cf.Ratings.of(["ann", "bob"], ["y", "x"], [1, 5])
    lists = {"mine": {"ann": ["x"], "bob": ["y"]}}
    assert measure(lists, test, "nDCG@2").step.settings["threshold"] == 3
    assert measure(lists, test, "nDCG@2", train=train).step.settings["threshold"] == 4
    assert cf.judge(lists, test, train=train).judgments.threshold == 4
    split = cf.splits.predefined(train, test)
    with pytest.raises(cf.CranfieldError, match="no user who is served has a test rating of 4 or more"):
        cf.recommend(split, "popularity", relevant="one")


def test_the_highest_rating_is_named_also_where_it_is_below_0():
    disliked = cf.Ratings.of(["ann", "bob"], ["x", "y"], [-2, -1])
    with pytest.raises(cf.SettingError, match="no test rating is 1 or more; the highest is -1; lower"):
        measure({"mine": {"ann": ["x"], "bob": ["y"]}}, disliked, "P@1", threshold=1).check_measured()


TIED = pl.DataFrame(
    {
        "user": ["ann"] * 3 + ["bob"] * 3,
        "item": ["x", "y", "z", "z", "x", "v"],
        "score": [0.5, 0.5, 0.1, 0.9, 0.4, 0.4],
    }
)


@pytest.mark.parametrize("read_with", ["trec_eval", "input", "average"])
@pytest.mark.parametrize("ties", ["trec_eval", "average"])
def test_ties_are_ordered_as_asked_in_runs_as_in_rows(read_with, ties):
    test = cf.Ratings.of(["ann", "bob", "bob"], ["x", "x", "v"])
    run = cf.read_run(TIED, name="mine", ties=read_with)
    metrics = ["RR", "P@1", "ERR", "bpref"]
    expected = cf.measure({"mine": TIED}, test, metrics, ties=ties).values
    among_others = [run, {"user": ["ann"], "item": ["x"]}]
    routes = run, [run], {"mine": run}, cf.read_run(run, ties=ties), cf.judge({"mine": run}, test, ties=ties)
    for given in (*routes, among_others, iter([run])):
        np.testing.assert_array_equal(cf.measure(given, test, metrics, ties=ties).values[:1], expected)
    kept = cf.measure(run, test, metrics).values
    np.testing.assert_array_equal(kept, cf.measure({"mine": TIED}, test, metrics, ties=read_with).values)
    np.testing.assert_array_equal(kept, cf.measure({"mine": run}, test, metrics).values)


def test_the_order_of_the_input_cannot_be_asked_of_a_run_that_lost_it():
    test = cf.Ratings.of(["ann", "bob"], ["x", "x"])
    run = cf.read_run(TIED, name="mine")
    with pytest.raises(cf.SettingError, match="the order of its tied items in the input is not known"):
        cf.measure(run, test, "RR", ties="input")
    whole = cf.read_run({"ann": {"x": 2.0, "y": 1.0}}, name="mine")
    assert cf.measure(whole, test, "RR", ties="input").values.tolist() == [[[1.0, 0.0]]]
    ranked = cf.read_run(pl.DataFrame({"user": ["ann"] * 2, "item": ["x", "y"], "rank": [1, 1]}), name="mine")
    with pytest.raises(cf.SettingError, match="read it with ties='average'"):
        cf.measure(ranked, test, "RR", ties="average")


@pytest.mark.parametrize("ties", ["input", "average"])
def test_ties_cannot_be_asked_of_one_relevant_lists_which_know_none(tmp_path, ties):
    frame = pl.DataFrame({"user": ["ann", "bob"], "item": ["x", "x"], "rank": [1, 2], "length": [3, 3]})
    frame.write_csv(tmp_path / "one.csv")
    test = cf.Ratings.of(["ann", "bob"], ["x", "x"])
    for given in (cf.read_run(frame, name="one"), str(tmp_path / "one.csv")):
        assert cf.measure(given, test, "RR").average().item() == 0.75
        with pytest.raises(cf.SettingError, match="has one-relevant lists: of them only the rank of an item is known"):
            cf.measure(given, test, "RR", ties=ties)


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars", "lazy", "open file"])
def test_one_frame_or_open_file_is_measured_as_its_path_is(tmp_path, kind):
    frame = pl.concat([TIED.with_columns(system=pl.lit(name)) for name in ("a", "b")])
    frame.write_csv(tmp_path / "runs.csv")
    given = {
        "pandas": frame.to_pandas, "arrow": frame.to_arrow, "polars": frame.clone, "lazy": frame.lazy,
        "open file": (tmp_path / "runs.csv").open,
    }[kind]()  # fmt: skip
    test = cf.Ratings.of(["ann", "bob"], ["x", "x"])
    mine, theirs = (cf.measure(source, test, "RR") for source in (given, str(tmp_path / "runs.csv")))
    assert mine.systems == theirs.systems == ("a", "b")
    np.testing.assert_array_equal(mine.values, theirs.values)


def test_judged_lists_keep_their_ties():
    test = cf.Ratings.of(["ann", "bob"], ["x", "x"])
    judged = cf.judge({"mine": TIED}, test, ties="average")
    with pytest.raises(cf.SettingError, match="ties was decided when these lists were judged"):
        cf.measure(judged, metrics="RR", ties="trec_eval")
