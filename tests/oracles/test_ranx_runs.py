"""Runs and judgments held by ranx are read as they are."""

from __future__ import annotations

import pytest

from cranfield.rankings import read_run, read_test

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ranx():
    import ranx  # it takes seconds, and belongs to the extra test: without it these tests fail

    return ranx


def test_a_run_of_ranx_keeps_its_name_and_scores(ranx):
    run = read_run(ranx.Run({"u2": {"a": 0.5, "d": 0.75}, "u1": {"b": 1.0}}, name="bm25"))
    assert run.name == "bm25"
    assert run.frame().rows() == [("u1", "b", 1, 1.0), ("u2", "d", 1, 0.75), ("u2", "a", 2, 0.5)]


@pytest.mark.parametrize("ending", ["json", "trec", "parquet"])
def test_a_run_that_ranx_saved_is_read(ranx, tmp_path, ending):
    path = tmp_path / f"bm25.{ending}"
    ranx.Run({"u2": {"a": 0.5, "d": 0.75}, "u1": {"b": 1.0}}, name="tagged").save(str(path), kind=ending)
    run = read_run(path)
    assert run.frame().rows() == [("u1", "b", 1, 1.0), ("u2", "d", 1, 0.75), ("u2", "a", 2, 0.5)]
    assert run.name == "bm25"


def test_judgments_of_ranx_are_ratings(ranx):
    test = read_test(ranx.Qrels({"u2": {"a": 1}, "u1": {"b": 0, "c": 2}}))
    assert test.frame().rows() == [("u1", "b", 0.0), ("u1", "c", 2.0), ("u2", "a", 1.0)]


@pytest.mark.parametrize("kind", ["json", "trec", "parquet"])
def test_judgments_that_ranx_saved_are_read(ranx, tmp_path, kind):
    path = tmp_path / f"test.{kind}"
    ranx.Qrels({"u2": {"a": 1}, "u1": {"b": 0, "c": 2}}).save(str(path), kind=kind)
    assert read_test(path).frame().rows() == [("u1", "b", 0.0), ("u1", "c", 2.0), ("u2", "a", 1.0)]
