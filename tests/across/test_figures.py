"""The figures: what their marks are made of, and that they are drawn."""

import json

import polars as pl
import pytest

import cranfield as cf
from cranfield._errors import SettingError
from cranfield._figures import definition, svg

TABLE = pl.DataFrame(
    {
        "dataset": ["ml-1m", "yelp", "ml-100k", "lastfm", "mine"],
        "a": ["0.137 ± 0.01", "0.307 ± 0.01", "0.135 ± 0.02", "0.094 ± 0.01", "0.033 ± 0.002"],
        "b": ["0.111 ± 0.01", "0.279 ± 0.01", "0.121 ± 0.02", "0.106 ± 0.01", "0.030 ± 0.002"],
        "c": ["0.117 ± 0.01", "0.374 ± 0.01", "0.106 ± 0.02", "0.079 ± 0.01", "0.031 ± 0.002"],
    }
)


@pytest.fixture(scope="module")
def result():
    return cf.compare_datasets(TABLE)


def test_a_forest_plot_has_a_row_per_dataset_and_three_averages_with_families_side_by_side(result):
    drawn = definition(result.plot("forest"))
    rows = next(layer["data"]["values"] for layer in drawn["layer"] if len(layer["data"]["values"]) > 1)
    names = [row["row"] for row in rows]
    assert names == [
        "lastfm",
        "ml-1m",
        "ml-100k",
        "yelp",
        "mine",
        "these datasets",
        "datasets like these",
        "a new dataset",
    ]
    frame = result.frame().row(0, named=True)
    pooled = {row["row"]: row for row in rows}
    first, second = result.standings[0].main
    sign = 1 if (frame["system_a"], frame["system_b"]) == (first, second) else None
    if sign:
        from math import exp

        assert pooled["datasets like these"]["size"] == pytest.approx(exp(frame["effect"]), rel=1e-5)
        assert pooled["a new dataset"]["upper"] == pytest.approx(exp(frame["new_upper"]), rel=1e-5)


@pytest.mark.parametrize("kind", ["forest", "ranks", "rules"])
@pytest.mark.parametrize("style", ["screen", "paper"])
def test_figures_are_drawn_in_both_styles(result, kind, style):
    assert svg(result.plot(kind, style=style)).startswith("<svg")


def test_the_rules_figure_has_a_mark_for_each_rule_and_system(result):
    text = json.dumps(definition(result.plot("rules")))
    assert text.count('"leads": true') == sum(result.rules()["leads"])


def test_an_unknown_figure_is_refused(result):
    with pytest.raises(SettingError, match="kind='forrest' is not one of"):
        result.plot("forrest")


def test_without_errors_the_forest_plot_has_no_bars_of_users():
    means = TABLE.with_columns(pl.col("a", "b", "c").str.split(" ").list.first())
    drawn = definition(cf.compare_datasets(means).plot("forest"))
    rows = next(layer["data"]["values"] for layer in drawn["layer"] if len(layer["data"]["values"]) > 1)
    assert "these datasets" not in [row["row"] for row in rows]
    assert rows[0]["lower"] == rows[0]["size"] == rows[0]["upper"]
