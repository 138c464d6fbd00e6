"""``cranfield data simulate``."""

from __future__ import annotations

import inspect
import json

import click
import numpy as np
import polars as pl
import pytest

from cranfield import simulate
from cranfield.cli.data.simulate import command
from cranfield.data.reading import read

SMALL = ("--users", 60, "--items", 40, "--ratings", 600)


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_a_world_is_written_with_its_truth_and_record(tmp_path, cranfield, ending):
    out, truth = tmp_path / f"world.{ending}", tmp_path / f"truth.{ending}"
    found = cranfield(
        "data", "simulate", "--out", out, "--truth", truth, *SMALL, "--seed", 3, "--popularity-bias", 0.5, "--tastes", 4
    )
    assert found.code == 0
    world = simulate.world(60, 40, 600, seed=3, popularity_bias=0.5, tastes=4)
    assert read(out).fingerprint == world.ratings.fingerprint
    complete = read(truth)
    assert len(complete) == 2_400
    assert np.array_equal(complete.values, world.preference().ravel())
    record = json.loads((tmp_path / "world.json").read_text())
    assert record["steps"][0]["settings"]["popularity_bias"] == 0.5
    assert record["truth"] == f"truth.{ending}"
    assert record["fingerprint"] == world.ratings.fingerprint
    assert "60 users, 40 items, 600 ratings" in found.out


def test_popularity_ratings_are_those_of_the_function(tmp_path, cranfield):
    out = tmp_path / "steep.csv"
    assert (
        cranfield("data", "simulate", "--out", out, "--kind", "popularity", *SMALL, "--alpha", 2, "--activity", 0).code
        == 0
    )
    assert read(out).fingerprint == simulate.popularity(60, 40, 600, alpha=2, activity=0).fingerprint
    assert json.loads((tmp_path / "steep.json").read_text())["truth"] is None


def test_a_histogram_is_read_from_its_spelling(tmp_path, cranfield):
    out = tmp_path / "made.csv"
    assert (
        cranfield("data", "simulate", "--out", out, "--kind", "popularity", *SMALL, "--histogram", "1=0.25,5=0.75").code
        == 0
    )
    assert read(out).fingerprint == simulate.popularity(60, 40, 600, histogram={1: 0.25, 5: 0.75}).fingerprint


def test_like_resembles_a_file(tmp_path, cranfield):
    given = tmp_path / "given.csv"
    simulate.popularity(50, 30, 500, alpha=1.0).frame().write_csv(given)
    out = tmp_path / "flat.parquet"
    assert cranfield("data", "simulate", "--out", out, "--kind", "popularity", "--like", given, "--alpha", 0).code == 0
    made = read(out)
    assert (made.n_users, made.n_items, len(made)) == (50, 30, 500)
    assert np.ptp(made.item_counts) <= 1


def test_without_times_there_is_no_time_column(tmp_path, cranfield):
    assert cranfield("data", "simulate", "--out", tmp_path / "still.parquet", *SMALL, "--no-times").code == 0
    assert pl.read_parquet(tmp_path / "still.parquet").columns == ["user", "item", "rating"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--kind", "popularity", "--tastes", 3), "--tastes goes with --kind world"),
        (("--kind", "popularity", "--truth", "t.csv"), "--truth goes with --kind world"),
        (("--alpha", 1), "--alpha goes with --kind popularity"),
        (("--like", "r.csv"), "--like goes with --kind popularity"),
        (("--ratings", 10**9), "do not fit"),
        (("--users", 200_000, "--items", 500, "--ratings", 10**6, "--truth", "t.parquet"), "100,000,000 pairs"),
        (("--histogram", "1=a"), "--histogram '1=a' cannot be read"),
        (("--histogram", "1"), "--histogram '1' cannot be read"),
        (("--truth", "t.xlsx"), "t.xlsx does not end in a known format"),
        (("--truth", "./made.csv"), "made.csv is given twice as an output file"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(tmp_path, cranfield, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    found = cranfield("data", "simulate", "--out", "made.csv", *arguments)
    assert found.code == 2
    error = found.err
    assert said in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_every_setting_of_the_functions_has_an_option_and_every_default_is_told():
    options = {one.name: one for one in command.params if isinstance(one, click.Option)}
    for function in (simulate.world, simulate.popularity):
        for name, parameter in inspect.signature(function).parameters.items():
            assert name in options
            default = parameter.default
            if isinstance(default, int | float) and not isinstance(default, bool) and name != "seed":
                assert f"[default: {default:g}" in options[name].help
