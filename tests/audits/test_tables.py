"""The tables of an audit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from cranfield.audits import Audit, Grid, VariedDecision, tables
from cranfield.audits.pair import PairView
from cranfield.facts import audit as audit_facts


@pytest.fixture(scope="module")
def view(audit):
    return PairView.of(audit)


def test_shares_are_those_of_the_systems_in_the_order_of_the_header(audit, view):
    table = tables.shares(audit, view)
    assert table.header[2:4] == ["mf leads", "knn leads"]
    assert [row[0] for row in table.rows] == ["all set-ups", *(f"split random(train=0.{k})" for k in (2, 5, 8))]
    frame = audit.shares().filter(pl.col("question").is_null(), system_a="knn", system_b="mf", over="cells")
    shares = dict(zip(frame["what"], frame["share"]))
    assert table.rows[0][2].startswith(f"{100 * shares['trails']:.0f} % [")
    assert "split (random(train=0.2), random(train=0.5), random(train=0.8))" in table.caption
    assert "is not a probability" in table.caption


def test_seen_from_the_other_system_the_columns_are_swapped(audit, view):
    other = PairView.of(audit, "knn", "mf")
    mine, yours = (tables.shares(audit, seen).rows for seen in (view, other))
    assert [(row[2], row[3]) for row in mine] == [(row[3], row[2]) for row in yours]
    assert {row[3] for row in tables.flips(view).rows} == {row[3] for row in tables.flips(other).rows}
    assert np.array_equal(view.d_z, -other.d_z)


def test_the_joint_test_has_its_four_statistics_and_the_spread_of_seeds(audit, view):
    table = tables.joint(audit, view)
    assert len(table.rows) == 4
    frame = audit.joint().filter(pl.col("question").is_null(), system_a="knn", system_b="mf")
    for place, name in ((3, "p_retrained"), (4, "p_corrected"), (5, "p")):
        assert [row[place] for row in table.rows] == [tables.p_text(p) for p in frame[name]]
    assert len(tables.joint_by_question(audit, view).rows) == 3


def test_influence_has_the_most_important_decision_first_and_chance_last(view):
    table = tables.influence(view)
    assert table.rows[0][0] == "split"
    assert table.rows[-1][:2] == ["seed", "chance"]


def test_changes_that_turn_the_winner_come_first(view):
    row = tables.flips(view).rows[0]
    assert row[:4] == ["split", "random 20 % of ratings", "random 80 % of ratings", "knn"]


def test_the_rule_says_where_each_system_leads(view):
    table = tables.rule(view)
    assert table.rows == [["train share of 0.5 or more", "mf"], ["train share below 0.5", "knn"]]
    assert "right for 100 % of the set-ups" in table.caption


def test_ranks_have_their_mean_and_range_best_first(audit):
    rows = tables.ranks(audit).rows
    assert [row[0] for row in rows] == ["mf", "knn", "pop"]
    assert rows[-1][1:4] == ["3.00", "3", "3"]


def test_every_pair_of_systems_has_a_row_in_the_order_of_the_starting_point(audit):
    assert [row[:2] for row in tables.pairs(audit).rows] == [["mf", "knn"], ["mf", "pop"], ["knn", "pop"]]


def test_weights_and_the_starting_point_stand_with_the_options():
    grid = Grid.product([VariedDecision("cutoff", "equivalent", ("5", "10"), (1.0, 3.0))], start=1)
    assert tables.opened(grid).rows == [["cutoff", "equivalent", "10", "5 (weight 0.25), 10 (weight 0.75)"]]


def test_combinations_that_are_left_out_have_their_reason_and_what_they_share():
    opened = (
        VariedDecision("cutoff", "equivalent", ("5", "10")),
        VariedDecision("lists", "question", ("full", "condensed")),
    )
    cells = np.array([[0, 0], [1, 0]])
    reason = "the lists are too short"
    grid = Grid(opened, cells, np.arange(2), invalid=(((0, 1), reason), ((1, 1), reason)))
    assert tables.left_out(grid).rows == [[reason, "2", "lists condensed"]]


@pytest.fixture(scope="module")
def held_against_truth(grid, terms):
    averages = terms.values.mean(axis=2, dtype=np.float64)
    values = {"knn": 0.3, "mf": 0.2, "pop": 0.1}
    tests = [audit_facts.PairedTest("student", "none"), audit_facts.PairedTest("student", "holm")]
    advised = ({**ADVICE, "rank": 1}, {**ADVICE, "rank": 2}, {**ADVICE, "rank": None, "reason": "too few users"})
    audit = Audit.of(grid, ("knn", "mf", "pop"), averages, terms, draws=250, resamples=10, truth=values, testings=tests)
    return replace(audit, advised=advised)


ADVICE = {
    "setup": "lists full", "metric": "AP@10", "average": "mean", "rank": 1, "score": 0.75, "lower": 0.5, "upper": 0.9,
    "first": 0.6, "tau": 1.0, "clear": True, "reason": None,
}  # fmt: skip


def test_other_tests_are_seen_from_the_first_system(held_against_truth):
    frame = held_against_truth.significance().filter(pl.col("question").is_null(), system_a="knn", system_b="mf")
    rows = tables.tests(held_against_truth, PairView.of(held_against_truth, "mf", "knn")).rows
    assert [row[:2] for row in rows] == [["student", "none"], ["student", "holm"]]
    assert [row[3] for row in rows] == [tables.share_text(share) for share in frame["trails_significantly"]]
    assert [row[6] for row in rows] == [tables.p_text(p) for p in frame["start_p_corrected"]]


def test_a_known_truth_has_a_row_per_option_and_per_pair(held_against_truth):
    options = tables.truth(held_against_truth)
    assert options.rows[0][:2] == ["all cells", "–"]
    assert [row[1] for row in options.rows if row[0] == "split"] == [f"random(train=0.{k})" for k in (2, 5, 8)]
    assert "the given values" in options.caption
    pair = tables.truth_pairs(held_against_truth).rows[0]
    assert pair[:5] == ["knn", "mf", "0.3000", "0.2000", "knn"]
    assert pair[5].startswith("33 % [")


def test_the_best_metric_of_each_design_has_a_row_and_a_failure_its_reason(held_against_truth):
    rows = tables.advice(held_against_truth).rows
    assert [row[1] for row in rows] == ["AP@10 (mean)", "too few users"]
    assert rows[0][2:] == ["0.750", "yes", "1.00"]


def test_without_a_truth_other_tests_or_advice_there_are_no_such_rows(audit, view):
    empty = [tables.tests(audit, view), tables.truth(audit), tables.truth_pairs(audit), tables.advice(audit)]
    assert all(not table.rows for table in empty)
