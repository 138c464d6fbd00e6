"""The papers' layout: printed numbers beside those of a run."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from cranfield import describe, read
from cranfield.rankings import recommend
from cranfield.splits import k_fold
from cranfield.studies.frame.study import recognised
from cranfield.studies.valcarce.exhibits import LABELS_2020, dataset_table


def test_the_printed_dp_of_2020_adds_up_to_the_printed_totals(of_2020):
    # The paper prints totals, which the rows typed here must add up to.
    printed = dict(zip(LABELS_2020.values(), (8.546, 10.034, 10.144, 11.233, 4.164, 11.756, 13.141, 11.425, 5.658)))
    rows = of_2020.exhibit("table-3").frame.filter(pl.col("dataset") == "Total")
    assert dict(rows.select("metric", "dp").iter_rows()) == pytest.approx(printed)


def test_a_run_stands_below_the_printed_rows(of_2018, of_2020):
    for found, factor in ((of_2018, 2.0), (of_2020, 1.0)):
        frame = found.exhibit("table-3").frame
        own = frame.filter(pl.col("dataset").str.starts_with("this run"))
        power = found.assessment.power.filter(pl.col("metric").str.ends_with("@100"))["dp"].to_list()
        assert sorted(own["dp"].to_list()) == pytest.approx(sorted(factor * one for one in power))


def test_every_scenario_of_2020_has_an_arithmetic_and_a_geometric_figure(of_2020):
    seen = {}
    for number in (3, 5, 6, 7, 8, 10, 11, 12, 13, 14):
        frame = of_2020.exhibit(f"figure-{number:02}").frame
        assert frame["scenario"].n_unique() == 1
        seen[number] = (frame["scenario"][0], frame["average"][0], frame["metric"][0])
    assert [seen[number][0] for number in (3, 5, 6, 7, 8)] == ["ratings", "items", "popular", "users", "large"]
    assert [seen[number][0] for number in (10, 11, 12, 13, 14)] == ["ratings", "items", "popular", "users", "large"]
    assert {seen[number][1:] for number in (3, 5, 6, 7, 8)} == {("mean", "P")}
    assert {seen[number][1:] for number in (10, 11, 12, 13, 14)} == {("geometric", "GP")}


def test_figure_4_averages_the_values_of_the_systems(of_2020):
    frame = of_2020.exhibit("figure-04").frame
    assert frame["scenario"].unique().to_list() == ["ratings"]
    whole = frame.filter((pl.col("size") == 1.0) & (pl.col("metric") == "NDCG"))["value"].to_numpy()
    place = of_2020.assessment.metrics.index("nDCG@100")
    assert np.sort(whole) == pytest.approx(np.sort(of_2020.assessment.whole[:, 0, place].mean(axis=0)))


def test_cut_offs_of_2018_are_those_of_its_first_figure(of_2018):
    frame = of_2018.exhibit("figure-1").frame
    assert frame["metric"].to_list() == ["@5", *(f"@{cutoff}" for cutoff in range(10, 101, 10))]
    tau = frame.drop("metric").to_numpy()
    assert np.diag(tau) == pytest.approx(1.0)
    assert tau == pytest.approx(tau.T)
    numbers = of_2018.exhibit("figure-1-numbers").frame
    assert numbers.height == 55
    assert numbers.filter((pl.col("a") == "@100") & (pl.col("b") == "@5"))["printed"].item() == 0.90


def test_movielens_1m_is_known_again_with_the_printed_statistics(real_data):
    found = describe(read(real_data("ml-1m.parquet")))
    for paper, further in (
        ("2018", {"Gini": found.gini_items}),
        ("2020", {"User Gini": found.gini_users, "Item Gini": found.gini_items}),
    ):
        assert recognised(found) == "MovieLens 1M"
        rows = dataset_table(found, paper, further).frame.rows()
        assert rows[-1][1:] == rows[0][1:]


def test_another_dataset_is_told_to_be_another(of_2018):
    table = of_2018.exhibit("table-3").table
    assert "none of the paper's datasets" in table.notes[0]
    assert "doubled" in table.notes[1]


def test_the_share_of_judged_items_is_counted_over_whole_lists(of_2020, small):
    shares = []
    for split in k_fold(small, k=2, seed=0):
        known = set(split.test.frame().select("user", "item").rows())
        for run in recommend(split, list(of_2020.assessment.systems), 100, candidates="test", seed=0):
            lists = run.frame().select("user", "item").rows()
            tested = {user for user, _ in known}
            counted = [pair for pair in lists if pair[0] in tested]
            shares.append(sum(pair in known for pair in counted) / len(counted))
    frame = of_2020.exhibit("numbers-in-the-text").frame
    assert frame["here"][0] == pytest.approx(np.mean(shares))
