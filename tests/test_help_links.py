"""Errors name the page of the documentation that helps."""

from __future__ import annotations

from pathlib import Path

import pytest

import cranfield as cf
from cranfield._errors import _PAGES, page_for
from cranfield.cli import main
from cranfield.data import filters

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("module", _PAGES)
def test_every_entry_names_a_module_or_function_and_a_page_that_exist(module):
    place = ROOT / "src" / "cranfield" / module.replace(".", "/")
    if not place.is_dir() and not place.with_suffix(".py").is_file():
        assert f"def {place.name}(" in place.parent.with_suffix(".py").read_text()
    assert (ROOT / "docs" / f"{_PAGES[module]}.md").is_file()


def test_every_stage_has_a_page():
    stages = {path.parent.name for path in (ROOT / "src" / "cranfield").glob("*/__init__.py")}
    assert {stage for stage in stages if not stage.startswith("_")} - {"cli", "tables", "facts"} <= set(_PAGES)


def test_every_command_has_a_page():
    commands = {path.stem for path in (ROOT / "src" / "cranfield" / "cli").glob("[!_]*") if path.name != "__pycache__"}
    assert {f"cli.{command}" for command in commands} <= set(_PAGES)


RATINGS = cf.Ratings.of([1, 1, 2, 2], [1, 2, 1, 2])
RUN = {"mine": {1: [1, 2]}}


@pytest.mark.parametrize(
    ("wrong", "page"),
    [
        (lambda: cf.read("nowhere.csv"), "data"),
        (lambda: filters.apply(RATINGS, "k_core(k=0)"), "splits"),
        (lambda: cf.datasets.load("nothing"), "datasets"),
        (lambda: cf.simulate.world(0), "simulate"),
        (lambda: cf.splits.apply(RATINGS, "temporal"), "splits"),
        (lambda: cf.splits.apply(RATINGS, "shuffle"), "splits"),
        (lambda: cf.recommend(cf.splits.random(RATINGS, train=0.5, exact=True), "nothing"), "recommenders"),
        (lambda: cf.read_run("nowhere.tsv"), "runs"),
        (lambda: cf.measure(RUN, RATINGS, "Precison@10"), "metrics/README"),
        (lambda: cf.measure(RUN, RATINGS, "P@10", lists="half"), "evaluate"),
        (lambda: cf.compare(cf.measure(RUN, RATINGS, "P@10"), alpha=2), "compare"),
        (lambda: cf.experiments.Decisions(split="shuffle"), "splits"),
        (lambda: cf.experiments.Experiment(seed=-1), "experiment"),
    ],
)
def test_an_error_has_the_page_of_its_stage(wrong, page):
    with pytest.raises(cf.CranfieldError) as raised:
        wrong()
    assert raised.value.page == f"docs/{page}.md"


def test_an_error_that_was_not_raised_has_no_page():
    assert cf.SettingError("nothing").page is None
    assert page_for(ValueError()) is None


def test_the_command_line_names_the_page_in_the_same_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ratings.csv").write_text("user,item\n1,1\n")
    with pytest.raises(SystemExit):
        main(["split", "ratings.csv", "--method", "temporal", "--out", "parts"])
    assert capsys.readouterr().err.endswith("or choose a random split; see docs/splits.md\n")
