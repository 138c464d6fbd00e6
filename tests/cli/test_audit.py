"""``cranfield audit`` and ``cranfield run`` with a table [audit]."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.usefixtures("undrawn")

FILE = """
[systems]
popular = "popularity"
near = "knn(k=5)"
[data.tiny]
simulate = "world(users=60, items=40, ratings=900)"
[audit.vary]
cutoff = [5, 10]
average = ["mean", "weighted"]
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "experiment.toml"
    path.write_text(FILE)
    return path


def test_an_audit_says_its_verdict_and_where_its_files_are(cranfield, file):
    result = cranfield("audit", file, "--no-report")
    assert result.code == 0
    assert result.out.startswith("popular leads near in 75 % of 4 set-ups; only two changes together reverse it.\n")
    folder = file.with_suffix("") / "audit"
    assert f"The audit: {folder}" in result.out
    assert "The report" not in result.out
    assert json.loads((folder / "audit.json").read_text())["grid"]["cells"] == 4


def test_an_audit_has_a_page_and_is_a_section_of_that_of_the_experiment(cranfield, file):
    file.write_text(f'{FILE}[decisions]\nmetrics = "P@10"\nsignificance = "student"\n')
    result = cranfield("audit", file, "-q")
    folder = file.with_suffix("")
    assert f"The report: {folder / 'audit' / 'report.html'}" in result.out
    page, whole = ((folder / name).read_text() for name in ("audit/report.html", "report.html"))
    assert "does the winner survive other decisions?</h1>" in page
    places = [whole.index(f'<section id="{name}"') for name in ("explorer", "audit", "card")]
    assert places == sorted(places)
    assert (folder / "audit" / "figures" / "curve.pdf").is_file()
    assert r"\label{tab:tiny-audit-shares}" in (folder / "audit" / "tables" / "shares.tex").read_text()


def test_an_audit_says_beforehand_how_much_there_is_to_do(cranfield, file):
    first = cranfield("audit", file, "--no-report")
    assert first.err.startswith("4 set-ups; to make: 2 trainings, 2 rankings; roughly ")
    again = cranfield("audit", file, "--no-report")
    assert again.err.startswith("4 set-ups; to make: 0 trainings, 0 rankings")
    assert "to make" not in cranfield("audit", file, "--no-report", "-q").err


def test_a_world_is_held_against_its_own_truth(cranfield, file):
    result = cranfield("audit", file, "--truth", "nDCG@10", "--no-report", "-q", "--details")
    assert "In truth (nDCG@10 on all true preferences)" in result.out
    assert (file.with_suffix("") / "audit" / "truth.csv").is_file()


def test_a_dry_run_counts_and_writes_nothing(cranfield, file):
    result = cranfield("audit", file, "--dry-run")
    assert "set-ups          4\n" in result.out
    assert "trainings        2 to make, 0 kept" in result.out
    assert not file.with_suffix("").exists()


def test_run_adds_the_audit_of_its_file(cranfield, file):
    result = cranfield("run", file, "--no-report", "-q")
    assert "\npopular leads near in 75 % of 4 set-ups; " in result.out
    assert (file.with_suffix("") / "audit" / "audit.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--preset", "usul"], "did you mean 'usual'?"),
        (["--budget", "1"], "less than one universe"),
        (["--train", "x.csv"], "--train does nothing without --test"),
        (["--no-report", "--open"], "--open does nothing with --no-report"),
        (["--dry-run", "--no-report"], "--report/--no-report does nothing with --dry-run"),
        (["--truth", "nowhere.csv"], "the true values cannot be read"),
        (["--truth", "P", "--dry-run"], "is not a metric with a cut-off and no parameters"),
        (["another.toml"], "one experiment file"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(cranfield, file, arguments, words):
    result = cranfield("audit", file, *arguments)
    assert result.code == 2
    assert words in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("candidates = ['group']", "candidates=group is not possible in any combination"),
        ("cutoff = [5, 10, 20]\n[audit]\nbudget = 2", "less than one universe for each of the 3 options"),
        ("cutoff = [5, 10]\n[audit.weights]\ncutoff = [1]", "cutoff has 2 options and 1 weights"),
        ("cutof = [5, 10]", "did you mean 'cutoff'?"),
    ],
)
def test_what_cannot_be_audited_is_refused_before_anything_is_made(cranfield, file, table, words):
    file.write_text(FILE.partition("[audit.vary]")[0] + "[audit.vary]\n" + table)
    result = cranfield("audit", file)
    assert (result.code, words in result.err) == (2, True)
    assert not file.with_suffix("").exists()


def test_an_unknown_decision_names_the_file_and_the_nearest(cranfield, file):
    file.write_text(FILE.replace("cutoff", "cut-off"))
    result = cranfield("audit", file)
    assert (result.code, "did you mean 'cutoff'?" in result.err) == (2, True)


def test_given_lists_are_audited(cranfield, tmp_path):
    test = tmp_path / "test.csv"
    test.write_text(
        "user,item,rating\n" + "".join(f"{u},{i},{1 + (u * i) % 5}\n" for u in range(8) for i in range(1, 6))
    )
    for name, step in (("a", 1), ("b", 2)):
        lines = [f"{u} Q0 {1 + (k * step + u) % 7} {k} {9 - k} {name}\n" for u in range(8) for k in range(1, 6)]
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    lists = [tmp_path / "a.tsv", tmp_path / "b.tsv"]
    assert "is a file; name a folder" in cranfield("audit", "--test", test, *lists, "--out", test).err
    result = cranfield(
        "audit", "--test", test, *lists, "-m", "P@5", "--budget", 40, "--out", tmp_path / "out", "--details"
    )
    assert result.code == 0, result.err
    assert result.out.count("combinations are left out") == 1
    assert (tmp_path / "out" / "audit.json").is_file()
    page = tmp_path / "out" / "report.html"
    assert f"The report: {page}" in result.out
    assert "combinations that are left out, with the reason" in page.read_text()
    assert (tmp_path / "out" / "figures" / "curve.svg").is_file()


OWN = """
from pathlib import Path
import numpy as np
import cranfield as cf
Path(__file__).with_name("imported").touch()

class Mine:
    def __init__(self, k=1):
        self.k = k
    def fit(self, train):
        self.scores = train.item_counts % (self.k + 1)
        return self
    def score(self, users):
        return np.tile(self.scores, (len(users), 1)).astype(float)

@cf.metric("OwnHitsOfAudit")
def hits(judged):
    return judged.n_hits > 0
"""


def test_an_audit_varies_your_own_metrics_and_systems_if_they_are_allowed(cranfield, file):
    file.with_name("mine_of_audit.py").write_text(OWN)
    file.write_text(
        FILE.replace('"knn(k=5)"', '"mine_of_audit:Mine(k=3)"').replace("cutoff = [5, 10]", 'metrics = ["P@5", "RR@5"]')
        + '[audit.systems.near]\nk = [3, 6]\n[decisions]\nmetrics = "mine_of_audit:hits@5"\n'
    )
    for options in ((), ("--allow-code",)):
        for command in ("audit", "run"):
            planned = cranfield(command, file, "--dry-run", *options)
            assert planned.code == 0, planned.err
        assert not file.with_name("imported").exists()
    assert "set-ups          12" in cranfield("audit", file, "--dry-run").out
    refused = cranfield("audit", file, "--no-report")
    assert (refused.code, refused.err.count("\n")) == (2, 2)
    assert "names code" in refused.err
    audited = cranfield("audit", file, "--no-report", "--allow-code")
    assert audited.code == 0, audited.err
    grid = json.loads((file.with_suffix("") / "audit" / "audit.json").read_text())["grid"]
    assert grid["universes"] == 12


def test_a_metric_of_your_own_that_only_the_audit_names_needs_permission_too(cranfield, file):
    file.with_name("mine_of_audit.py").write_text(OWN)
    file.write_text(FILE.replace("cutoff = [5, 10]", 'metrics = ["P@10", "mine_of_audit:hits@10"]'))
    refused = cranfield("run", file, "--no-report")
    assert refused.code == 2
    assert "audit.vary names code, mine_of_audit:hits, which is only run if it is allowed" in refused.err
    assert not file.with_name("imported").exists()
    assert cranfield("run", file, "--no-report", "--allow-code").code == 0
