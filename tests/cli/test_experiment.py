"""The commands about an experiment and its folder."""

from __future__ import annotations

import json
import sys

import pytest

import cranfield as cf
from cranfield.cli import main
from cranfield.experiments import Experiment, read_experiment

pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def experiment(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(
        'systems = ["popularity", "knn(k=5)"]\n[data.tiny]\nsimulate = "world(users=60, items=40, ratings=900)"\n'
    )
    return path


def test_new_writes_a_file_that_run_can_read(cranfield, tmp_path):
    code, out, _ = cranfield("new", tmp_path / "e.toml")
    assert code == 0
    assert f"cranfield run {tmp_path / 'e.toml'}" in out
    assert read_experiment(tmp_path / "e.toml") == Experiment()
    code, _, err = cranfield("new", tmp_path / "e.toml")
    assert code == 2
    assert "--force" in err


def test_new_prints_a_schema_for_editors(cranfield):
    code, out, _ = cranfield("new", "--schema")
    assert code == 0
    assert json.loads(out)["properties"]["decisions"]["properties"]["coverage"]["enum"] == ["full", "reduced", "own"]


def test_run_goes_from_data_to_report_and_says_the_verdict(cranfield, experiment):
    code, out, err = cranfield("run", experiment)
    assert code == 0, err
    folder = experiment.with_suffix("")
    assert out.startswith("P@10: Neither popularity nor knn(k=5) is shown to be better (")
    assert f"The report: {folder / 'report.html'}" in out
    stages = [line.rsplit(maxsplit=2)[0].strip() for line in err.splitlines() if line.endswith(" s")]
    assert stages == ["Reading the experiment", "Reading", "Splitting", "Training", "Ranking", "Judging", "Measuring",
                      "Comparing", "Writing the card", "Writing the report"]  # fmt: skip
    assert "not reported: how the hyper-parameters were chosen" in err
    page = (folder / "report.html").read_text()
    assert "knn(k=5)" in page
    assert "a random 20 % of ratings as test" in page
    assert (folder / "figures" / "tiny-averages.svg").read_text().startswith("<svg")
    assert (folder / "tables" / "tiny-averages.tex").exists()


def test_an_assessment_stands_on_the_page(cranfield, experiment):
    experiment.write_text(experiment.read_text() + "[assess]\nsamples = 2\nscenarios = ['ratings']\n")
    code, _, err = cranfield("run", experiment, "--jobs", 1)
    assert code == 0, err
    page = (experiment.with_suffix("") / "report.html").read_text()
    assert 'id="trust"' in page
    assert "assess" in page[page.index('id="card"') :]


def test_run_again_says_the_same_and_writes_the_same_report(cranfield, experiment):
    first = cranfield("run", experiment, "--quiet")
    page = experiment.with_suffix("") / "report.html"
    before = page.read_bytes()
    page.unlink()
    again = cranfield("run", experiment, "--quiet")
    assert first == again
    assert (again.code, again.err) == (0, "")
    assert page.read_bytes() == before


def test_run_without_the_libraries_that_draw_leaves_the_report_out(cranfield, experiment, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    code, out, err = cranfield("run", experiment)
    assert code == 0
    assert "note: there will be no report" in err
    assert "The report" not in out
    assert not (experiment.with_suffix("") / "report.html").exists()


@pytest.mark.slow  # like tests/reports/test_reporting.py, but through the command
def test_several_data_sets_have_a_page_each_and_one_over_all(cranfield, experiment, tmp_path):
    text = experiment.read_text() + '[data.other]\nsimulate = "world(users=50, items=30, ratings=700)"\n'
    text += '[decisions]\nmetrics = ["P@10"]\n'
    experiment.write_text(text)
    code, _, _ = cranfield("run", experiment, "--out", tmp_path / "out")
    assert code == 0
    assert {path.name for path in (tmp_path / "out").glob("*.html")} == {
        "report.html",
        "report-tiny.html",
        "report-other.html",
    }


@pytest.mark.slow
def test_folds_are_reported_together(cranfield, experiment):
    text = experiment.read_text() + '[decisions]\nsplit = "k_fold(k=2)"\nmetrics = ["P@10", "ItemCoverage@10"]\n'
    experiment.write_text(text)
    code, _, err = cranfield("run", experiment, "--threads", "1")
    assert code == 0, err


def test_a_dry_run_says_what_would_be_done_and_does_nothing(cranfield, experiment):
    code, out, _ = cranfield("run", experiment, "--dry-run")
    assert code == 0
    assert "runs        2 to make, not made yet" in out
    assert "report      1 to make, not made yet" in out
    assert "report" not in cranfield("run", experiment, "--dry-run", "--no-report").out
    assert "roughly" in out
    assert not experiment.with_suffix("").exists()


def test_a_seed_on_the_command_line_counts_instead_of_the_files(cranfield, experiment, tmp_path):
    quick = '[decisions]\nmetrics = ["P@10"]\nsignificance = "student"\n'
    experiment.write_text("seed = 3\n" + experiment.read_text() + quick)
    for arguments, seed in (((), 3), (("--seed", "7"), 7), (("--seed", "0"), 0)):
        code, _, _ = cranfield("run", experiment, "--out", tmp_path / f"s{seed}", "--no-report", *arguments)
        assert code == 0
        assert read_experiment(tmp_path / f"s{seed}" / "experiment.toml").seed == seed


def test_a_mistake_is_one_line_and_code_2(cranfield, experiment, tmp_path):
    experiment.write_text("[decisions]\nlists = 'condensed'\nnonrelevant = 100\n")
    code, out, err = cranfield("run", experiment)
    assert (code, out) == (2, "")
    assert err.startswith(f"cranfield: {experiment}, line 2, decisions: lists='condensed' keeps only rated items")
    assert err.count("\n") == 1
    assert not experiment.with_suffix("").exists()
    assert cranfield("run", tmp_path / "no.toml").err.count("\n") == 1


def test_show_and_diff_tell_what_is_in_folders(cranfield, experiment, tmp_path):
    cranfield("run", experiment, "--out", tmp_path / "a", "--no-report")
    experiment.write_text(experiment.read_text() + "[decisions]\nthreshold = 3\n")
    cranfield("run", experiment, "--out", tmp_path / "b", "--no-report")
    code, out, _ = cranfield("show", tmp_path / "a")
    assert code == 0
    assert "popularity and knn(k=5) on tiny" in out
    assert len(json.loads(cranfield("show", tmp_path / "a", "--format", "json").out)) == 12
    code, out, _ = cranfield("diff", tmp_path / "a", tmp_path / "b")
    assert code == 0
    assert out.startswith("C2 threshold: auto → 3\n")
    moved = json.loads(cranfield("diff", tmp_path / "a", tmp_path / "b", "--format", "json").out)
    assert {row["system"] for row in moved} == {"popularity", "knn(k=5)"}
    assert cranfield("show", tmp_path / "none").code == 2
    assert cranfield("diff", tmp_path / "a", tmp_path / "none").code == 2


@pytest.fixture
def files(tmp_path):
    cf.Ratings.of(["a", "a", "b"], ["x", "y", "x"]).frame().write_csv(tmp_path / "train.csv")
    cf.Ratings.of(["a", "b"], ["z", "y"]).frame().write_csv(tmp_path / "test.csv")
    (tmp_path / "mine.tsv").write_text("user\titem\tscore\na\tz\t2\na\ty\t1\n")
    return [str(tmp_path / name) for name in ("train.csv", "test.csv", "mine.tsv")]


def test_a_foreign_experiment_is_checked_in_every_format(files, capsys, tmp_path):
    main(["checklist", *files])
    assert capsys.readouterr().out.startswith("# Checklist: train")
    main(["checklist", *files, "--format", "json"])
    assert json.loads(capsys.readouterr().out)["missing"] > 10
    main(["checklist", *files, "--out", str(tmp_path / "list.tex")])
    assert r"\begin{table}" in (tmp_path / "list.tex").read_text()


@pytest.mark.parametrize("sources", [["."], ["missing"], [".", "test.csv"]])
def test_what_is_no_experiment_is_one_line_and_2(sources, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["checklist", *sources])
    assert end.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
