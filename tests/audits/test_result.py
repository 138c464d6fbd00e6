"""`Audit`: the object that holds all answers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield._errors import SettingError
from cranfield.audits import Audit, Grid, UserContributions, VariedDecision
from cranfield.comparisons.p_values import holm
from cranfield.facts import audit as audit_facts


def test_the_frame_has_one_row_per_cell_and_pair_with_its_options(audit, grid):
    frame = audit.frame()
    assert frame.height == 3 * grid.n_cells
    own = frame.filter(system_a="knn", system_b="mf")
    assert own.filter("start").row(0, named=True)["split"] == "random(train=0.8)"
    assert own["leader"].drop_nulls().is_in(["knn", "mf"]).all()
    assert own["average_a"].to_numpy() - own["average_b"].to_numpy() == pytest.approx(own["difference"].to_numpy())
    assert own["weight"].sum() == pytest.approx(1)


def test_the_leader_has_the_better_average(audit):
    frame = audit.frame()
    ahead = frame.filter(pl.col("average_a") > pl.col("average_b"))
    assert (ahead["leader"] == ahead["system_a"]).all()


def test_cells_of_one_universe_have_the_same_numbers():
    grid = Grid(
        (VariedDecision("gain", "equivalent", ("a", "b", "c")),), np.array([[0], [1], [2]]), np.array([0, 1, 0])
    )
    values = np.random.default_rng(0).random((2, 2, 20))
    audit = Audit.of(grid, ["a", "b"], values.mean(axis=2), values, draws=50, resamples=5)
    rows = audit.frame()
    assert rows["d_z"][0] == rows["d_z"][2] != rows["d_z"][1]
    shares = audit.shares().filter(what="leads")
    lead = rows["leader"] == "a"
    assert shares.filter(over="cells")["share"].item() == pytest.approx(lead.mean())
    assert shares.filter(over="universes")["share"].item() == pytest.approx(lead[:2].mean())


def test_a_decision_with_the_name_of_a_column_keeps_both(tmp_path):
    grid = Grid.product([VariedDecision("users", "equivalent", ("all", "active"))])
    values = np.random.default_rng(0).random((2, 2, 10))
    audit = Audit.of(grid, ["a", "b"], values.mean(axis=2), values, draws=20, resamples=3)
    assert {"users", "users (decision)"} <= set(audit.frame().columns)


def test_the_split_explains_the_effect_and_the_sign(audit):
    rows = audit.influence().filter(system_a="knn", system_b="mf").filter(pl.col("with_decision").is_null())
    for answer in ("d_z", "sign"):
        own = rows.filter(answer=answer)
        assert own["decision"].to_list() == ["split", "metric", "average", "seed"]
        assert own["shapley"].sum() == pytest.approx(1)
        assert own["shapley"][0] > 0.8
        assert (own["lower"] <= own["shapley"]).all()
        assert (own["shapley"] <= own["upper"]).all()
    assert rows["kind"].to_list()[:4] == ["question", "equivalent", "equivalent", "chance"]


def test_the_flips_of_the_starting_point_are_those_of_the_split(audit):
    flips = audit.flips().filter(system_a="knn", system_b="mf")
    assert flips.filter("turns_winner")["after"].to_list() == ["random(train=0.2)"]


def test_the_rule_names_the_train_share(audit):
    rule = audit.rule("knn", "mf")
    assert rule.paths(1)[0][0].startswith("train share below")
    assert rule.accuracy > rule.majority


def test_joint_p_values_are_corrected_over_the_pairs_within_each_question(audit):
    joint = audit.joint()
    assert joint.height == 3 * (1 + 3) * 4
    for _, rows in joint.group_by("question", "statistic"):
        assert rows["p_corrected"].to_numpy() == pytest.approx(holm(rows["p"].to_numpy()))
    assert joint["p_retrained"].null_count() == 0


def test_ranks_are_given_over_all_universes_and_within_each_question(audit):
    ranks = audit.ranks()
    assert ranks["question"].n_unique() == 4
    last = ranks.filter(pl.col("question").is_null(), pl.col("system") == "pop", pl.col("rank") == 3)
    assert last["share"].item() == pytest.approx(1)


def test_effects_range_from_the_smallest_to_the_largest(audit):
    row = audit.effects().row(0, named=True)
    own = audit.frame().filter(system_a="knn", system_b="mf")["d_z"]
    assert (row["q0"], row["q100"]) == (own.min(), own.max())


def test_the_default_pair_is_that_of_the_two_best_at_the_start(audit):
    assert audit.systems_at_start[2] == "pop"
    assert set(audit.pair().systems) == {"knn", "mf"}
    assert audit.pair("mf", "knn") is audit.pair("knn", "mf")


def test_lower_is_better_turns_the_leader_and_the_ranks():
    grid = Grid.product([VariedDecision("metric", "equivalent", ("RMSE", "MAE"))])
    errors = np.random.default_rng(1).random((2, 2, 30)) + np.array([0.0, 0.5])[:, None, None]
    audit = Audit.of(grid, ["a", "b"], errors.mean(axis=2), -errors, lower_is_better=True, draws=50, resamples=5)
    assert audit.frame()["leader"].to_list() == ["a", "a"]
    assert audit.systems_at_start == ("a", "b")
    assert audit.ranks().filter(system="a", rank=1)["share"].item() == 1


def test_universes_without_a_linear_average_are_left_out_of_the_test_and_named():
    grid = Grid.product([VariedDecision("average", "equivalent", ("mean", "median"))])
    values = np.random.default_rng(1).random((2, 2, 30))
    terms = UserContributions(values, linear=np.array([True, False]))
    audit = Audit.of(grid, ["a", "b"], values.mean(axis=2), terms, draws=50, resamples=5)
    assert audit.joint()["universes"].unique().to_list() == [1]
    assert audit.shares().filter(what="leads", over="universes")["share"].item() in (0, 0.5, 1)
    assert audit.notes == (audit_facts.NotSumsOverUsers(1, ("average median",)),)
    none = Audit.of(
        grid, ["a", "b"], values.mean(axis=2), UserContributions(values, linear=np.zeros(2)), draws=50, resamples=5
    )
    assert none.joint().height == 0
    assert not any(isinstance(fact, audit_facts.JointDifference) for fact in none.facts())


def test_combinations_that_cannot_be_computed_are_counted_with_their_reason():
    opened = (
        VariedDecision("lists", "equivalent", ("full", "condensed")),
        VariedDecision("cutoff", "equivalent", ("5", "10")),
    )
    cells = np.array([[0, 0], [0, 1], [1, 0]])
    grid = Grid(opened, cells, np.arange(3), invalid=(((1, 1), "lists are too short"),))
    values = np.random.default_rng(1).random((2, 3, 30))
    audit = Audit.of(grid, ["a", "b"], values.mean(axis=2), values, draws=50, resamples=5)
    assert audit.notes == (audit_facts.LeftOutCombinations({"lists are too short": 1}),)
    assert set(audit.influence()["method"]) == {"enumeration"}


@pytest.mark.parametrize(
    ("systems", "averages", "message"),
    [
        (["a"], np.zeros((1, 2)), "at least two systems"),
        (["a", "a"], np.zeros((2, 2)), "same name"),
        (["a", "b"], np.zeros((2, 3)), "2 systems × 2 universes"),
        (["a", "b"], np.full((2, 2), np.nan), "universe 0 has an average that is not a number"),
    ],
)
def test_input_that_does_not_fit_together_is_refused(systems, averages, message):
    grid = Grid.product([VariedDecision("gain", "equivalent", ("a", "b"))])
    with pytest.raises(SettingError, match=message):
        Audit.of(grid, systems, averages, np.zeros((len(systems), 2, 4)))


def test_a_system_that_was_not_audited_is_an_error_that_names_the_nearest(audit):
    with pytest.raises(SettingError, match=r"no system 'knm' was audited.*knn"):
        audit.pair("knm", "mf")
    with pytest.raises(SettingError, match="given twice"):
        audit.pair("mf", "mf")
    with pytest.raises(SettingError, match="only 'mf' was given; name both"):
        audit.pair("mf")
