from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.audits.auditing import audit_runs
from cranfield.comparisons import compare

pytestmark = pytest.mark.usefixtures("undrawn")

USERS, ITEMS = 40, 30


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Write a test set and three runs: one that knows the test set, and two that guess."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    liked = rng.random((USERS, ITEMS)) < 0.2
    rows = [
        f"u{u:02},i{i:02},{5 if liked[u, i] else 2}" for u in range(USERS) for i in range(ITEMS) if liked[u, i] or i < 3
    ]
    (tmp_path / "test.csv").write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    for name, known in (("good", 0.6), ("guess", 0.0), ("other", 0.0)):
        scores = rng.random((USERS, ITEMS)) + known * liked
        rows = [f"u{u:02},i{i:02},{scores[u, i]:.6f}" for u in range(USERS) for i in range(ITEMS)]
        (tmp_path / f"{name}.csv").write_text("user,item,score\n" + "\n".join(rows) + "\n")
    return tmp_path


@pytest.fixture
def run(files, cranfield):
    def call(*arguments: str) -> str:
        base = ("compare", "--test", "test.csv", "good.csv", "guess.csv", "other.csv", "--threshold", "4")
        code, out, err = cranfield(*base, *arguments)
        assert (code, err) == (0, "")
        return out

    return call


def test_a_sentence_and_a_table_are_printed(run):
    out = run("-m", "P@5")
    assert out.startswith("P@5: good is best: other is ")
    assert (
        "\npaired permutation test, with the max-|t| correction of Westfall and Young, level 0.05; relevant from 4\n"
        in out
    )
    assert "worse than good" in out
    assert len(out.splitlines()) <= 2 + 1 + 5 + 5
    assert "better/equal/worse" in run("-m", "P@5", "--details")


def test_csv_and_json_are_the_frame_of_the_function(run):
    rows = list(csv.DictReader(io.StringIO(run("-m", "P@5", "-m", "nDCG@10", "--format", "csv"))))
    told = json.loads(run("-m", "P@5", "-m", "nDCG@10", "--format", "json"))
    scores = cf.measure(["good.csv", "guess.csv", "other.csv"], "test.csv", ["P@5", "nDCG@10"], threshold=4)
    expected = compare(scores).frame(detail=True)
    assert [float(row["p"]) for row in rows] == expected["p"].to_list() == [row["p"] for row in told["rows"]]
    assert told["settings"]["correction"] == "max_t"
    assert len(rows) == 6


def test_a_baseline_test_and_average_can_be_chosen(run):
    out = json.loads(
        run("-m", "RR", "--baseline", "guess", "--significance", "t", "--average", "geometric", "--format", "json")
    )
    assert {row["system_b"] for row in out["rows"]} == {"guess"}
    assert {row["test"] for row in out["rows"]} == {"student"}
    assert out["settings"]["average"] == "geometric"


def test_matrix_and_latex_show_every_system(run):
    matrix, latex = run("-m", "P@5", "--format", "matrix"), run("-m", "P@5", "--format", "latex")
    assert matrix.count("good") == 2
    assert "$^{a}$" in latex
    assert r"\toprule" in latex
    assert "<sup>a</sup>" in run("-m", "P@5", "--format", "markdown")


def test_sampling_and_subsets_are_options(run):
    options = ("--method", "monte-carlo", "--resamples", "500", "--subsets", "3", "--seed", "4", "--format", "json")
    rows = json.loads(run("-m", "P@5", *options))["rows"]
    assert {row["method"] for row in rows} == {"monte-carlo"}
    assert rows[0]["rejected"] == 1.0


def test_power_shows_its_own_table(run):
    assert json.loads(run("-m", "P@5", "--power", "0.01", "--format", "json"))[0]["users_needed"] > 40


def _gate(cranfield, *arguments):
    return cranfield("compare", "--test", "test.csv", "--threshold", "4", "-m", "P@5", *arguments)


def test_a_gate_exits_with_0_only_if_the_claim_is_shown_for_every_run(files, cranfield):
    runs = {"shown": ("good.csv", "guess.csv"), "worse": ("guess.csv", "good.csv")}
    for (outcome, (new, old)), code in zip(runs.items(), (0, 1)):
        for claim in (("--no-worse", "1%"), ("--no-worse", "0.01"), ("--better",)):
            found = _gate(cranfield, new, old, "--baseline", old.removesuffix(".csv"), *claim)
            assert (found.code, found.err) == (code, "")
            assert found.out.startswith(f"P@5: {outcome}: {new.removesuffix('.csv')} is ")
            assert len(found.out.partition("\n")[0].split()) <= 25
    undecided = _gate(cranfield, "other.csv", "guess.csv", "--baseline", "guess", "--better")
    assert undecided.code == 1
    assert "P@5: undecided: other (" in undecided.out
    both = _gate(cranfield, "good.csv", "other.csv", "guess.csv", "--baseline", "guess", "--better")
    assert both.code == 1
    assert both.out.startswith("Undecided: “better than guess” is shown for 1 of 2 systems and metrics.")


class _Unread(io.StringIO):
    """A stream whose reader is gone."""

    def write(self, text):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


@pytest.mark.parametrize("stream", [None, _Unread()], ids=["closed", "unread"])
@pytest.mark.parametrize("format", ["table", "json", "csv"])
def test_the_exit_code_of_a_gate_does_not_depend_on_whether_somebody_reads_it(
    files, cranfield, monkeypatch, stream, format
):
    for new, old, code in (("good", "guess", 0), ("guess", "good", 1)):
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", stream)
            patch.setattr("sys.stderr", stream)
            found = _gate(cranfield, f"{new}.csv", f"{old}.csv", "--baseline", old, "--better", "--format", format)
        assert found.code == code


@pytest.mark.skipif(os.name != "posix", reason="it needs a shell")
@pytest.mark.parametrize("end", [">&-", ">&- 2>&-", "2>&1 | exec 0<&-"])
def test_a_gate_that_passed_exits_with_0_without_a_word_if_its_output_is_closed(files, end):
    command = f"{sys.executable} -m cranfield compare --test test.csv --threshold 4 -m P@5 good.csv guess.csv"
    script = f"set -o pipefail; {command} --baseline guess --better {end}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_gate_says_which_users_have_no_list(files, cranfield):
    lines = (files / "good.csv").read_text().splitlines()
    user = lines[1].split(",")[0]
    kept = [line for line in lines if line.split(",")[0] != user]
    (files / "fewer.csv").write_text("\n".join(kept) + "\n")
    found = _gate(cranfield, "fewer.csv", "guess.csv", "--baseline", "guess", "--better")
    assert "fewer serves " in found.out
    assert "users that both systems serve" in found.out


def test_a_gate_says_the_same_in_json_on_the_page_and_in_python(files, cranfield):
    arguments = ("other.csv", "guess.csv", "--baseline", "guess", "--no-worse", "2%")
    code, out, err = _gate(cranfield, *arguments, "--format", "json", "--report", "page.html")
    assert (code, err.count("\n") <= 1) == (1, True)
    told = json.loads(out)
    scores = cf.measure(["other.csv", "guess.csv"], "test.csv", "P@5", threshold=4)
    expected = compare(scores).no_worse("other", than="guess", by="2%")
    assert told["gate"]["outcome"] == expected.outcome == "undecided"
    assert told["gate"]["sentences"] == expected.verdict == told["verdict"]
    shown = _gate(cranfield, *arguments).out
    assert shown.startswith(f"{compare(scores).no_worse('other', than='guess', by='2%').facts()[0].brief}\n\n")
    assert all(f"· {sentence}" in shown for sentence in told["verdict"])
    assert "undecided: other" in (files / "page.html").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(_gate(cranfield, *arguments, "--format", "csv").out)))
    assert rows[0]["outcome"] == "undecided"


def test_a_file_can_be_written(run, files):
    assert run("-m", "P@5", "--format", "csv", "--out", "out/result.csv") == ""
    assert (files / "out" / "result.csv").read_text().startswith("metric,system_a,system_b,")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("good.csv",), "1 system to compare"),
        (("good.csv", "guess.csv", "--significance", "wilcoxson"), "did you mean 'wilcoxon'?"),
        (("good.csv", "guess.csv", "--baseline", "godo"), "did you mean 'good'?"),
        (("good.csv", "guess.csv", "--alpha", "2"), "alpha=2 is not a share"),
        (("good.csv", "guess.csv", "--power", "1", "--format", "latex"), "--power has no latex"),
        (("good.csv", "guess.csv", "--better", "--power", "1"), "--better and --power exclude each other"),
        (("good.csv", "guess.csv", "--no-worse", "1%"), "--no-worse needs a run to compare with"),
        (("good.csv", "guess.csv", "--baseline", "good", "--no-worse", "a bit"), "'a bit' is not a margin; write"),
        (("good.csv", "guess.csv", "--baseline", "good", "--better", "--format", "latex"), "--better has no latex"),
        (("good.csv", "guess.csv", "--correction", "hom"), "hom"),
        (("good.csv", "guess.csv", "--significance", "wilcoxon(continuity=5)"), "continuity=5 of wilcoxon is neither"),
        (("good.csv", "guess.csv", "--power", "nan"), "difference=nan is not a number"),
        (
            ("good.csv", "guess.csv", "--power", "0"),
            "difference=0 is not a difference to detect; give a number above 0",
        ),
        (("good.csv", "guess.csv", "--power", "-0.1"), "difference=-0.1 is not a difference to detect"),
        (("good.csv", "guess.csv", "--memory", "-1"), "'-1' is not a size; write bytes, or a size such as 500MB"),
        (
            ("good.csv", "guess.csv", "--resamples", "1000000000000"),
            "--resamples 1000000000000 of",
        ),
        (
            ("good.csv", "guess.csv", "--threshold", "9", "--tipping-point"),
            "nothing can be measured: no test rating is 9 or more",
        ),
        (("good.csv", "guess.csv", "--subsets", "5", "--subset-size", "3"), "--subset-size 3.0 is not a share"),
    ],
)
def test_mistakes_are_one_line_and_code_2(files, cranfield, arguments, told):
    code, out, err = cranfield("compare", "--test", "test.csv", *arguments)
    assert code == 2
    assert out == ""
    assert told in err
    assert "Traceback" not in err


def test_the_page_holds_the_verdict_the_pairs_and_the_explorer(run, files):
    run("-m", "P@5", "--report", "page.html")
    made = (files / "page.html").read_text()
    assert '<p class="answer">good is best: other is ' in made
    assert all(f'id="{section}"' in made for section in ("answer", "leaderboard", "pairs", "users", "explorer", "card"))


def test_the_leaderboard_of_the_page_averages_as_the_comparison_does(run, files):
    how = ("--average", "geometric(form=adjusted, epsilon=0.01)", "--undefined", "leave out", "--coverage", "reduced")
    run("-m", "P@5", "--report", "page.html", *how)
    made = (files / "page.html").read_text()
    best = re.search(r"By P@5, averaged over \d+ users, good reaches (\d\.\d+)\.", made)[1]
    assert f'<span class="average">{best}</span>' in made
    assert "users without a list are left out" in made


def test_reduced_coverage_is_over_the_same_users_in_sentence_table_json_and_page(files, cranfield):
    # "guess" serves only the first half of the users.
    kept = [line for line in (files / "guess.csv").read_text().splitlines() if not line.startswith(("u2", "u3"))]
    (files / "guess.csv").write_text("\n".join(kept) + "\n")
    base = ("compare", "--test", "test.csv", "good.csv", "guess.csv", "other.csv", "--threshold", "4", "-m", "P@5")
    reduced = (*base, "--coverage", "reduced")
    told = json.loads(cranfield(*reduced, "--format", "json")[1])
    averages = {row["system"]: row["mean"] for row in told["averages"]}
    code, text, _ = cranfield(*reduced, "--report", "page.html")
    page = (files / "page.html").read_text()
    assert code == 0
    assert {row["n"] for row in told["rows"]} == {20}
    assert all(row["mean_a"] == pytest.approx(averages[row["system_a"]]) for row in told["rows"])
    clause = "over the 20 of 40 users that all 3 systems serve"
    assert told["population"] == clause
    assert clause in text.splitlines()[0]
    assert f"{averages['good']:.4f} a*" in text
    assert clause in page
    assert all(f'<span class="average">{mean:.4f}</span>' in page for mean in averages.values())
    assert page.count(clause) >= 3  # the verdict, the leaderboard, the pairs


def test_evaluate_compare_python_and_the_audit_have_the_same_reduced_averages(files, cranfield):
    kept = [line for line in (files / "guess.csv").read_text().splitlines() if not line.startswith(("u2", "u3"))]
    (files / "guess.csv").write_text("\n".join(kept) + "\n")
    runs = ("good.csv", "guess.csv", "other.csv")
    measured = ("--test", "test.csv", *runs, "--threshold", "4", "-m", "P@5", "--coverage", "reduced")
    told = json.loads(cranfield("compare", *measured, "--format", "json").out)
    compared = {row["system"]: pytest.approx(row["mean"]) for row in told["averages"]}
    evaluated = json.loads(cranfield("evaluate", *measured, "--format", "json").out)
    assert {row["system"]: row["mean"] for row in evaluated} == compared
    assert {row["lists"] for row in evaluated} == {20}
    scores = cf.measure(cf.read_runs(list(runs)), cf.read_test("test.csv"), "P@5", threshold=4)
    assert dict(zip(scores.systems, scores.average(coverage="reduced")[:, 0].tolist())) == compared
    vary = {"coverage": ["full", "reduced"]}
    audit = audit_runs(cf.read_runs(list(runs)), cf.read_test("test.csv"), metric="P@5", threshold=4, vary=vary)
    frame = audit.frame().filter(coverage="reduced")
    assert {row["system_a"]: row["average_a"] for row in frame.iter_rows(named=True)}.items() <= compared.items()


@pytest.mark.parametrize("command", ["compare", "evaluate", "assess"])
def test_where_nothing_is_relevant_nobody_is_best_and_the_code_is_2(files, cranfield, command):
    runs = ("good.csv", "guess.csv", "other.csv")
    code, out, err = cranfield(command, "--test", "test.csv", *runs, "-m", "P@5", "-m", "RR", "--threshold", "6")
    assert (code, out) == (2, "")
    assert "no test rating is 6 or more; the highest is 5; lower --threshold" in err


def test_a_metric_of_relevance_beside_others_has_no_winner_where_nothing_is_relevant(files, cranfield):
    runs = ("good.csv", "guess.csv", "other.csv")
    arguments = ("--test", "test.csv", *runs, "-m", "P@5", "-m", "nDCG@5", "--threshold", "6")
    code, out, _ = cranfield("compare", *arguments, "--report", "page.html")
    said = "P@5: nothing can be said, since no test rating is 6 or more; the highest is 5."
    assert code == 0
    assert out.splitlines()[0].startswith("nDCG@5: good is best")
    assert f"· {said}" in out
    assert said in (files / "page.html").read_text()
    code, out, _ = cranfield("evaluate", *arguments)
    assert code == 0
    assert "0.0000" not in out
    assert "nothing is relevant" in out


@pytest.fixture
def towns(files):
    """Write a file in which each user has a town; good is good in one of them only."""
    rows = [f"u{u:02},{'oslo' if u < USERS // 2 else 'rome'}" for u in range(USERS)]
    (files / "towns.csv").write_text("user,town\n" + "\n".join(rows) + "\n")
    return "towns.csv"


def test_segments_have_their_own_verdicts_and_averages(run, towns):
    out = run("-m", "P@5", "--segment", towns)
    assert "towns.csv, oslo (20 users): P@5: good is best" in out
    assert "by towns.csv, groups of users; full lists" in out


def test_segments_are_in_csv_and_json(run, towns):
    rows = list(csv.DictReader(io.StringIO(run("-m", "P@5", "--segment", towns, "--format", "csv"))))
    assert [row["group"] for row in rows] == ["", "", "", *["oslo"] * 3, *["rome"] * 3]
    (told,) = json.loads(run("-m", "P@5", "--segment", towns, "--format", "json"))["segments"]
    assert told["segment"] == "towns.csv"
    assert len(told["interactions"]) == 6


def test_segments_go_to_the_page(run, towns, monkeypatch):
    shown = []
    monkeypatch.setattr("cranfield.reports.write_report", lambda *_, segments, **__: shown.extend(segments))
    run("-m", "P@5", "--segment", towns, "--report", "page.html")
    assert [one.segments.name for one in shown] == ["towns.csv"]


def test_segments_are_refused_where_they_would_not_be_shown(files, towns, cranfield):
    base = ("compare", "--test", "test.csv", "good.csv", "guess.csv", "--segment", towns)
    code, _, err = cranfield(*base, "--format", "matrix")
    assert code == 2
    assert "--segment does nothing with --no-worse, --better, --power or --format matrix" in err


@pytest.mark.parametrize("gate", [(), ("--baseline", "guess", "--no-worse", "2%")])
def test_json_says_what_it_was_computed_from(files, cranfield, gate):
    (files / "groups.csv").write_text("user,group\n" + "".join(f"u{user:02},{user % 2}\n" for user in range(USERS)))
    more = () if gate else ("--segment", "groups.csv:group")
    words = ("other.csv", "guess.csv", "-m", "P@5", "--read-runs", "gaps=close", "--format", "json", *gate, *more)
    told = json.loads(cranfield("compare", "--test", "test.csv", *words).out)
    assert told["version"] == cf.__version__
    named = {"test": "test.csv", "run": ["other.csv", "guess.csv"], **({} if gate else {"segment": "groups.csv"})}
    files_of = [(role, file) for role, held in named.items() for file in ([held] if isinstance(held, str) else held)]
    expected = [
        {"role": role, "file": file, "sha256": hashlib.sha256((files / file).read_bytes()).hexdigest()}
        for role, file in files_of
    ]
    assert told["inputs"] == expected
    settings = told["settings"]
    assert (settings["threshold"], settings["metrics"], settings["lists"], settings["ties"], settings["catalogue"]) == (
        4.0, ["P@5"], "full", "trec_eval", "none",
    )  # fmt: skip
    assert settings["reading"]["gaps"] == "close"
    assert (settings["significance"], settings["average"], settings["alpha"]) == ("permutation", "mean", 0.05)


def test_the_checksum_of_a_folder_follows_from_all_its_files(files, cranfield):
    for name in ("other", "guess"):
        home = files / "runs" / f"system={name}"
        home.mkdir(parents=True, exist_ok=True)
        pl.read_csv(files / f"{name}.csv").write_parquet(home / "lists.parquet")
    checksums = []
    for _ in range(2):
        told = json.loads(cranfield("compare", "--test", "test.csv", "runs", "-m", "P@5", "--format", "json").out)
        checksums.append(told["inputs"][1]["sha256"])
        pl.read_csv(files / "guess.csv").reverse().write_parquet(files / "runs" / "system=guess" / "lists.parquet")
    assert len(set(checksums)) == 2


def test_the_validation_part_is_what_users_had_before(cranfield, tmp_path):
    draw = np.random.default_rng(1)
    frame = {"user": draw.integers(0, 40, 2000), "item": draw.integers(0, 25, 2000), "time": np.arange(2000)}
    pl.DataFrame(frame).write_csv(tmp_path / "log.csv")
    answers = []
    for more in ([], ["--validation", 0.2]):
        home = tmp_path / f"parts{len(more)}"
        cranfield("split", tmp_path / "log.csv", "--method", "temporal(train=0.8)", *more, "--out", home)
        given = ["--train", home / "train.parquet"]
        given += ["--validation", home / "validation.parquet"] if more else []
        assert cranfield("recommend", *given, "-s", "knn", "-s", "popularity", "--out", home / "lists").code == 0
        lists = [home / "lists" / f"{name}.parquet" for name in ("knn", "popularity")]
        options = ["--repeats", "exclude", "-m", "nDCG@5", "--format", "json"]
        answers.append(json.loads(cranfield("compare", *lists, "--test", home / "test.parquet", *given, *options).out))
    assert answers[0]["averages"] == answers[1]["averages"]
    alone = cranfield("compare", *lists, "--test", home / "test.parquet", "--validation", home / "validation.parquet")
    assert (alone.code, "--validation goes with --train" in alone.err) == (2, True)
