"""Systems and metrics of one's own in the experiment file."""

from __future__ import annotations

import shutil

import pytest

import cranfield as cf
from cranfield._errors import OwnCodeError
from cranfield._own_code import allowing
from cranfield.cli import main
from cranfield.experiments import Results, diff, plan, read_experiment, run, show

MODULE = """
from pathlib import Path
import numpy as np
import cranfield as cf

Path(__file__).with_name("imported").touch()


class Mine:
    def __init__(self, k=1, seed=0):
        self.k, self.seed = k, seed
    def fit(self, train):
        noise = np.random.default_rng(self.seed).random(train.n_items)
        self.scores = noise + self.k * train.item_counts
        return self
    def score(self, users):
        return np.tile(self.scores, (len(users), 1))


@cf.metric("OwnHits")
def hits(judged, least=1):
    return judged.n_hits >= least
"""
FILE = """
[data.tiny]
simulate = "world(users=40, items=30, ratings=500)"
[systems]
random = "random"
mine = "my_systems:Mine(k=2)"
tuned = { system = "my_systems:Mine", search = { k = [0, 1] }, metric = "my_systems:hits@5" }
[decisions]
metrics = ["P@5", "my_systems:hits(least=2)@5"]
split = "k_fold(k=2)"
"""


def _made_anew(path):
    return {task.stage for task in plan(path).tasks if task.state != "kept"}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Write an experiment with code of its own, and run it."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "my_systems.py").write_text(MODULE)
    path = folder / "own.toml"
    path.write_text(FILE)
    run(path, allow_code=True)
    (folder / "imported").unlink()
    return path


@pytest.fixture
def file(done, tmp_path):
    """Give a copy, as it is after the run."""
    return shutil.copytree(done.parent, tmp_path / "copy", symlinks=True) / done.name


def test_systems_and_metrics_are_trained_searched_and_repeated_over_folds(done):
    results = Results(done.with_suffix(""))
    averages = results.averages()
    assert set(averages["system"]) == {"random", "mine", "tuned"}
    assert set(averages["metric"]) == {"P@5", "my_systems:hits(least=2)@5"}
    assert set(averages["fold"].drop_nulls()) == {1, 2}
    means = averages.filter(metric="P@5").filter(averages.filter(metric="P@5")["fold"].is_null())
    mean = dict(zip(means["system"], means["mean"]))
    assert mean["mine"] > mean["random"]
    assert "mine and tuned draw at random and were trained once" in " ".join(results.sentences("tiny"))


def test_nothing_is_made_again_and_nothing_imported_to_know_that(file):
    assert {task.state for task in plan(file).tasks} == {"kept"}
    assert not (file.parent / "imported").exists()


def test_code_that_has_changed_is_run_again(file):
    module = file.parent / "my_systems.py"
    module.write_text(MODULE + "# a remark\n")
    assert _made_anew(file) == set()
    module.write_text(MODULE.replace("noise + self.k", "noise - self.k"))
    assert _made_anew(file) >= {"searches", "models", "runs", "scores", "results"}
    before = Results(file.with_suffix("")).averages()
    run(file, allow_code=True)
    assert not Results(file.with_suffix("")).averages().equals(before)


def test_show_diff_and_dry_run_import_nothing(file, capsys):
    folder = str(file.with_suffix(""))
    assert "mine" in str(show(folder))
    diff(folder, folder)
    (file.parent / "my_systems.py").write_text(MODULE + "\nx = 1\n")
    main(["run", str(file), "--dry-run"])
    assert "models      4 to make, inputs or code have changed; 2 kept" in capsys.readouterr().out
    read_experiment(file)
    assert not (file.parent / "imported").exists()


def test_a_file_that_names_code_is_not_run_unless_that_is_allowed(file, capsys):
    with pytest.raises(cf.SettingError, match=r"systems\.mine names code, my_systems:Mine, which is only run if it is"):
        run(file)
    with pytest.raises(SystemExit) as stop:
        main(["run", str(file)])
    assert stop.value.code == 2
    assert "look at it first, and then give --allow-code" in capsys.readouterr().err
    assert not (file.parent / "imported").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Mine(k=2)", "Mine(depth=2)", r"systems\.mine: my_systems:Mine has no parameter 'depth'; known: k, seed"),
        ("my_systems:Mine(k=2)", "os:system(command=ls)", r"systems\.mine: os:system is not a class with fit"),
        ("Mine(k=2)", "Mien", r"systems\.mine: the module 'my_systems' has no 'Mien'; did you mean 'Mine'"),
        ("my_systems:Mine(k=2)", "not_there:Mine", r"systems\.mine: there is no module 'not_there'"),
        ("{ k = [0, 1] }", "{ d = [0, 1] }", r"systems\.tuned: search: my_systems:Mine has no parameter 'd'"),
        ("hits(least=2)", "hits(most=2)", r"decisions\.metrics: my_systems:hits has no parameter 'most'"),
        ("my_systems:hits(least=2)", "os:getcwd", r"decisions\.metrics: os:getcwd is not a metric of your own"),
        ("my_systems:Mine(k=2)", "my_systems.py:Mine", r"systems\.mine: 'my_systems.py:Mine' does not name code"),
    ],
)
def test_code_that_cannot_be_meant_is_refused_before_anything_is_trained(file, old, new, message):
    file.write_text(FILE.replace(old, new))
    with pytest.raises(cf.SettingError, match=message):
        run(file, allow_code=True)


def test_an_error_inside_own_code_names_its_line(file):
    module = file.parent / "my_systems.py"
    module.write_text(MODULE.replace("        return np.tile", "        nothing\n        return np.tile"))
    line = module.read_text().splitlines().index("        nothing") + 1
    with pytest.raises(OwnCodeError, match=rf"my_systems\.py, line {line}, in score: NameError: name 'nothing'"):
        run(file, allow_code=True)


def test_a_list_of_systems_calls_own_code_by_its_class(tmp_path):
    path = tmp_path / "listed.toml"
    path.write_text('systems = ["popularity", "my_systems:Mine(k=2)"]\n')
    assert [one.name for one in read_experiment(path).systems] == ["popularity", "Mine(k=2)"]


def test_own_code_cannot_fill(tmp_path):
    path = tmp_path / "filled.toml"
    path.write_text('[decisions]\nfill = "my_systems:Mine"\n')
    with pytest.raises(cf.SettingError, match="names code, which can be a system or a metric only"):
        read_experiment(path)


def test_a_dry_run_takes_allow_code_and_imports_nothing(file, capsys):
    main(["run", str(file), "--dry-run", "--allow-code"])
    assert "models" in capsys.readouterr().out
    assert not (file.parent / "imported").exists()


def test_a_metric_of_your_own_is_called_by_its_registered_name_on_pages_and_in_tables(tmp_path, monkeypatch):
    from cranfield.metrics import metric_label

    (tmp_path / "mine_by_name.py").write_text(
        'import cranfield as cf\n\n@cf.metric("LateHit")\ndef late_hit(judged):\n    return judged.n_hits > 0\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    with allowing(["mine_by_name:late_hit@3"], tmp_path):
        test = cf.Ratings.of(["a", "b", "c"], ["x", "y", "x"])
        runs = {"one": {user: ["x"] for user in "abc"}, "two": {user: ["y"] for user in "abc"}}
        scores = cf.measure(runs, test, "mine_by_name:late_hit@3")
        assert metric_label("mine_by_name:late_hit@3") == "LateHit@3"
        result = cf.compare(scores)
        assert result.verdict[0].startswith("LateHit@3: ")
        assert "mine_by_name" not in str(result)
    assert metric_label("nDCG(gain=exp)@10") == "nDCG(gain=exp)@10"
    assert metric_label("of.nowhere:late_hit@3") == "late_hit@3"
