"""The names of the package: few, all of them listed, each with an example; and the ways to run a whole experiment."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import cranfield as cf

MOST_NAMES = 60


def test_dir_lists_every_public_name_and_nothing_else_before_the_first_use():
    code = "import cranfield as cf; print(dir(cf) == sorted(dir(cf)), set(dir(cf)) == set(cf.__all__))"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout.split() == ["True", "True"]
    assert all(hasattr(cf, name) for name in dir(cf))


def test_there_are_few_names():
    assert len(dir(cf)) <= MOST_NAMES


@pytest.mark.parametrize("name", [name for name in dir(cf) if name != "__version__"])
def test_every_name_has_a_docstring_with_an_example(name):
    assert ">>>" in (inspect.getdoc(getattr(cf, name)) or "")


TINY = {
    "data": {"tiny": {"simulate": "world(users=60, items=40, ratings=900)"}},
    "systems": ["popularity", "random"],
    "decisions": {"metrics": "P@10", "significance": "student"},
}


def test_an_experiment_is_run_and_audited_from_a_dictionary(tmp_path):
    assert "P@10: " in cf.run(TINY, tmp_path / "out").verdict[0]
    audit = cf.audit({**TINY, "audit": {"vary": {"cutoff": [5, 10]}}}, tmp_path / "audited")
    assert audit.verdict


def test_what_is_written_comes_before_where_it_is_written():
    for name in ("write", "write_run", "write_judged", "write_report"):
        first, second, *_ = inspect.signature(getattr(cf, name)).parameters
        assert second == "path", name
        assert first in ("ratings", "run", "judged", "scores"), name


def test_a_split_may_be_given_by_the_share_of_the_test_part():
    ratings = cf.simulate.world(60, 40, 900).ratings
    by_test, by_train = cf.splits.random(ratings, test=0.2), cf.splits.random(ratings, train=0.8)
    assert by_test.test.fingerprint == by_train.test.fingerprint
    assert by_test.step.settings == by_train.step.settings


MISTAKEN = """seed = 1
[data]
ml = "ratings.csv"
[decisions]
threshhold = 5
lists = "fulll"
baseline = "none"
[systems]
knn = "knnn(k=5)"
"""


def test_an_experiment_file_tells_all_its_mistakes_with_their_lines(tmp_path):
    (tmp_path / "e.toml").write_text(MISTAKEN)
    with pytest.raises(cf.SettingError) as caught:
        cf.run(tmp_path / "e.toml")
    said = str(caught.value)
    assert "line 5, decisions: no key 'threshhold'; did you mean 'threshold'?" in said
    assert "line 6, decisions: lists='fulll' is not one of full, condensed" in said
    assert "line 9, systems.knn: there is no system 'knnn'" in said


def test_a_file_of_ratings_is_named_in_short_and_none_is_understood(tmp_path):
    from cranfield.experiments.file import read_experiment

    text = '[data]\nml = "ratings.csv"\n[decisions]\nbaseline = "none"\n[systems]\npopularity = "popularity"\n'
    (tmp_path / "e.toml").write_text(text)
    read = read_experiment(tmp_path / "e.toml")
    assert (read.data[0].name, read.data[0].file) == ("ml", "ratings.csv")
    assert read.decisions.baseline == read_experiment(tmp_path / "e.toml").decisions.baseline


def test_ten_everyday_tasks_fit_into_forty_lines_of_a_notebook():
    book = json.loads((Path(__file__).parents[1] / "examples/tasks.ipynb").read_text(encoding="utf-8"))
    texts = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"][1:]  # after installing
    assert len(texts) == 10
    assert sum(len(text.splitlines()) for text in texts) <= 40
