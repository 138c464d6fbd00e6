"""``cranfield dialects`` prints what the Python function returns."""

from __future__ import annotations

import csv
import io
import json

import polars as pl
import pytest

import cranfield as cf
from cranfield.measures.other_tools import compare_tools

TEST = "user,item,rating\nann,x,5\nann,y,2\nbob,y,4\n"
MINE = "user,item,score\nann,x,0.9\nann,z,0.8\nbob,z,0.7\nbob,y,0.2\n"
TREC = "ann Q0 y 1 3.0 theirs\nann Q0 x 2 2.0 theirs\nbob Q0 y 1 1.0 theirs\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test.csv").write_text(TEST)
    (tmp_path / "mine.csv").write_text(MINE)
    (tmp_path / "other.trec").write_text(TREC)
    return tmp_path


@pytest.fixture
def evaluate(files, cranfield):
    def run(*arguments: str) -> str:
        code, out, err = cranfield("evaluate", "--test", "test.csv", "mine.csv", "other.trec", "-q", *arguments)
        assert (code, err) == (0, "")
        return out

    return run


def test_a_table_is_printed_with_the_decisions_and_a_row_a_system(evaluate):
    out = evaluate("-m", "RR", "--threshold", "4")
    assert "relevant from 4" in out
    assert [line.split()[0] for line in out.splitlines()[3:5]] == ["mine", "other"]


def test_csv_and_json_have_one_row_a_system_and_metric(evaluate):
    options = ("-m", "RR", "-m", "P@1", "--threshold", "4")
    rows = list(csv.DictReader(io.StringIO(evaluate(*options, "--format", "csv"))))
    same = json.loads(evaluate(*options, "--format", "json"))
    assert [(row["system"], row["metric"]) for row in rows] == [
        ("mine", "RR"),
        ("mine", "P@1"),
        ("other", "RR"),
        ("other", "P@1"),
    ]
    expected = cf.measure(["mine.csv", "other.trec"], "test.csv", ["RR", "P@1"], threshold=4).frame()
    assert [float(row["mean"]) for row in rows] == expected["mean"].to_list() == [row["mean"] for row in same]


def test_what_was_found_out_and_what_happened_is_said_beside_any_format(files, cranfield):
    command = ("evaluate", "--test", "test.csv", "mine.csv", "other.trec", "-m", "P@1", "--format")
    said = ["relevant from 4", "mine: 2 places in the lists with an item that nobody rated in the test set",
            "the test set was read as ratings, mine as table, other as trec"]  # fmt: skip
    for kind in ("table", "csv", "json", "latex", "markdown"):
        code, out, err = cranfield(*command, kind)
        notes = err if kind in ("csv", "json") else out
        assert code == 0
        assert all(note in notes for note in said)


def test_coverage_of_places_and_items_stands_beside_the_averages(evaluate, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    header, _, mine, _ = evaluate("-m", "P@2", "-m", "RR@3", "--threshold", "4").splitlines()[1:5]
    names = [name.strip() for name in header.split("  ") if name.strip()]
    assert names == ["system", "P@2", "RR@3", "users", "places@3", "items in test and lists", "unjudged@3"]
    assert mine.split()[-4:] == ["100.0%", "66.7%", "100.0%", "50.0%"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "interval: 95% Student's t"),
        (("--interval", "bootstrap"), "interval: 95% bootstrap percentile"),
        (("--alpha", "0.2", "--average", "median"), "interval: 80% "),
    ],
)
def test_an_interval_stands_beside_each_average_of_a_table(evaluate, options, said):
    options = ("-m", "P@2", "--threshold", "4", *options)
    row = json.loads(evaluate(*options, "--format", "json"))[1]
    out = evaluate(*options)
    assert said in out
    if row["lower"] is not None:
        half, ends = f"±{row['mean'] - row['lower']:.4f}", f"[{row['lower']:.4f}, {row['upper']:.4f}]"
        assert f"{row['mean']:.4f} {half}" in out or f"{row['mean']:.4f} {ends}" in out


def test_averages_of_all_systems_are_chosen_by_name(evaluate):
    for average in ("standardised(form=z)", "urisk(baseline=mine, alpha=5)", "trisk(baseline=mine)", "georisk"):
        rows = json.loads(evaluate("-m", "P@2", "--threshold", "4", "--average", average, "--format", "json"))
        assert {row["average"] for row in rows} <= {average, "georisk"}


def test_repeated_judgments_are_refused_or_merged_and_the_format_can_be_told(files, cranfield):
    (files / "twice.qrels").write_text("ann 0 x 1\nann 0 x 5\nbob 0 y 5\n")
    command = ("evaluate", "--test", "twice.qrels", "mine.csv", "-m", "RR", "--threshold", "4", "--format", "json")
    code, _, err = cranfield(*command)
    assert (code, "--read repeated=" in err) == (2, True)
    assert cranfield(*command, "--read", "repeated=max")[0] == 0
    code, _, err = cranfield(*command, "--read", "repeated=max, format=ratings")
    assert code == 2


def test_averages_coverage_and_undefined_values_are_options(evaluate):
    options = ("-m", "RR", "--threshold", "5", "--format", "json")
    plain = json.loads(evaluate(*options))[0]["mean"]
    other = json.loads(evaluate(*options, "--undefined", "leave out", "--average", "median"))[0]
    assert (plain, other["mean"], other["average"]) == (0.5, 1.0, "median")


def test_the_tag_of_a_trec_run_names_the_system_if_asked(files, cranfield):
    code, out, _ = cranfield(
        "evaluate", "--test", "test.csv", "other.trec", "--read-runs", "tag=true", "-m", "RR", "--format", "json"
    )
    assert code == 0
    assert json.loads(out)[0]["system"] == "theirs"


def test_per_user_values_and_the_table_can_go_to_files(files, evaluate):
    assert evaluate("-m", "RR", "--per-user", "values.parquet", "--out", "t.tex", "--format", "latex") == ""
    assert pl.read_parquet("values.parquet").height == 4
    assert r"\toprule" in (files / "t.tex").read_text()


@pytest.mark.parametrize("option", ["--out", "--per-user", "--report"])
def test_what_is_read_is_never_written_over(files, cranfield, option):
    before = (files / "test.csv").read_bytes()
    found = cranfield("evaluate", "--test", "test.csv", "mine.csv", option, files / "test.csv")
    assert (found.code, before) == (2, (files / "test.csv").read_bytes())
    assert "would replace a file that is also read or written" in found.err


def test_bounds_stand_beside_the_averages(evaluate):
    row = json.loads(evaluate("-m", "P@2", "--threshold", "4", "--bounds", "--format", "json"))[0]
    assert (row["least"], row["mean"], row["most"]) == (0.5, 0.5, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--test", "test.csv", "mine.csv", "-m", "nDGC@10"), "did you mean 'nDCG'"),
        (("--test", "absent.csv", "mine.csv"), "absent.csv"),
        (("--test", "test.csv", "absent.csv"), "absent.csv"),
        (("--test", "test.csv", "mine.csv", "--average", "meen"), "did you mean 'mean'"),
        (("--test", "test.csv"), "RUN"),
        (("mine.csv",), "--test"),
        (("--test", "test.csv", "mine.csv", "--read-runs", "format=odd"), "odd"),
        (("--test", "test.csv", "mine.csv", "--threshold", "nan"), "threshold=nan is not a number"),
        (("--test", "test.csv", "mine.csv", "-m", "P(rel=nan)@5"), "rel=nan"),
        (("--test", "test.csv", "mine.csv", "-m", "ERR(rmax=nan)@5"), "rmax=nan of ERR is not one of dataset"),
        (
            ("--test", "test.csv", "mine.csv", "--average", "geometric(epsilon=x)"),
            "epsilon=x of geometric is not",
        ),
        (("--test", "test.csv", "mine.csv", "--average", "trimmed(share=x)"), "share=x of trimmed is not a number"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(files, cranfield, arguments, message):
    code, out, err = cranfield("evaluate", *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert "Traceback" not in err


def test_the_seed_may_stand_before_the_command(files, cranfield):
    users = range(30)
    pl.DataFrame({"user": users, "item": [u % 7 for u in users]}).write_csv("many.csv")
    pl.DataFrame({"user": users, "item": [u % 5 for u in users]}).write_csv("lists.csv")
    options = ("evaluate", "--test", "many.csv", "lists.csv", "-m", "P@1", "--interval", "bootstrap", "--format", "csv")
    before, after = cranfield("--seed", "5", *options), cranfield(*options, "--seed", "5")
    assert before == after
    assert before != cranfield(*options, "--seed", "6")


def test_help_teaches_by_example(cranfield):
    for command in ("evaluate", "split", "recommend", "compare"):
        code, out, _ = cranfield(command, "--help")
        assert code == 0
        assert f"cranfield {command}" in out.split("Examples:")[1]


def test_an_unknown_command_suggests_the_nearest(cranfield):
    code, _, err = cranfield("evalute")
    assert code == 2
    assert "did you mean 'evaluate'" in err


def test_a_page_can_be_written_beside_the_averages(evaluate, files):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    evaluate("-m", "RR", "--threshold", "4", "--report", "page.html")
    assert "mine" in (files / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("commands", ["measuring", pytest.param("assess", marks=pytest.mark.slow)])
def test_grades_below_0_are_noted_and_read_as_asked_for_by_every_command(files, cranfield, commands):
    (files / "qrels").write_text("ann 0 x 1\nann 0 y -1\nann 0 z 0\nbob 0 y 1\n")
    wanted = ("--test", "qrels", "mine.csv", "other.trec", "-m", "bpref", "--threshold", "1")
    readings = {(): "judged and not relevant", ("--negative-grades", "pooled"): "pooled and not judged"}
    assess = ("assess", "--scenario", "ratings", "--sizes", "1", "--samples", "2")
    for command in (("evaluate",), ("compare",)) if commands == "measuring" else (assess,):
        for option, words in readings.items():
            code, out, err = cranfield(*command, *wanted, *option, "--details")
            assert code == 0
            assert (out + err).count(f"1 test grade below 0, read as {words}") == 1
    code, out, err = cranfield("dialects", "--test", "qrels", "mine.csv", "-m", "AP", "--negative-grades", "unjudged")
    assert (code, "1 test grade below 0, read as not judged" in err) == (0, True)
    pooled = json.loads(cranfield("evaluate", *wanted, "-q", "--format", "json", "--negative-grades", "pooled")[1])
    judged = json.loads(cranfield("evaluate", *wanted, "-q", "--format", "json")[1])
    assert [row["mean"] for row in judged] == [1.0, 0.5]
    assert [row["mean"] for row in pooled] == [1.0, 1.0]


def test_an_overflow_is_one_line(files, cranfield):
    (files / "counts.csv").write_text("user,item,rating\nann,x,5000\nbob,y,4\n")
    code, out, err = cranfield("evaluate", "--test", "counts.csv", "mine.csv", "-m", "DCG(gain=exp)@10")
    assert (code, out) == (2, "")
    assert err.startswith("cranfield: DCG(gain=exp)@10 exceeds the largest number")
    assert err.count("\n") == 1


def test_segments_have_tables_of_their_own(evaluate, files):
    (files / "towns.csv").write_text("user,town\nann,oslo\nbob,rome\n")
    out = evaluate("-m", "RR", "--threshold", "4", "--segment", "towns.csv")
    assert "by towns.csv, groups of users" in out
    rows = json.loads(evaluate("-m", "RR", "--threshold", "4", "--segment", "towns.csv", "--format", "json"))
    assert [(row["group"], row["system"], row["mean"]) for row in rows] == [
        (None, "mine", 0.75), (None, "other", 0.75),
        ("oslo", "mine", 1.0), ("oslo", "other", 0.5), ("rome", "mine", 0.5), ("rome", "other", 1.0),
    ]  # fmt: skip


def test_a_segment_that_is_nothing_is_refused_in_one_line(files, cranfield):
    code, _, err = cranfield("evaluate", "--test", "test.csv", "mine.csv", "--segment", "towns.csv")
    assert code == 2
    assert err.startswith(
        "cranfield: --segment towns.csv is not a file, a column of the test file or a built-in segment"
    )
    assert err.count("\n") == 1


def test_a_metric_of_ones_own_is_named_by_its_module(evaluate, files, cranfield):
    (files / "my_metrics.py").write_text(
        "import cranfield as cf\n\n@cf.metric('typed_hits')\ndef hits(judged, least=1):\n"
        "    return judged.n_hits >= least\n\ndef plain(judged):\n    return 1\n"
    )
    rows = json.loads(evaluate("-m", "my_metrics:hits(least=1)@1", "--threshold", "4", "--format", "json"))
    assert [(row["metric"], row["mean"]) for row in rows] == [("my_metrics:hits(least=1)@1", 0.5)] * 2
    for metric in ("my_metrics:plain@1", "os:getcwd@1"):
        code, _, err = cranfield("evaluate", "--test", "test.csv", "mine.csv", "-m", metric)
        assert code == 2
        assert f"{metric.removesuffix('@1')} is not a metric of your own" in err


def test_times_random_stands_beside_the_averages_in_every_form(evaluate):
    options = ("-m", "RR", "-m", "P@1", "--threshold", "4", "--times-random")
    out = evaluate(*options)
    assert "Scores divided by the score of a random ranking" in out
    rows = json.loads(evaluate(*options, "--format", "json"))
    expected = cf.ratio_to_random(["mine.csv", "other.trec"], "test.csv", ["RR", "P@1"], threshold=4).frame()
    assert [row["times_random"] for row in rows] == expected["times_random"].to_list()
    assert expected.row(1, named=True)["random"] == pytest.approx(1 / 3)  # x, y and z are the targets


def test_metrics_can_be_measured_in_expectation_over_the_draw_of_targets(files, cranfield):
    whole = "user,item,score\nann,x,4\nann,z,3\nann,y,2\nbob,z,3\nbob,y,2\nbob,x,1\n"
    (files / "whole.csv").write_text(whole)
    command = ("evaluate", "--test", "test.csv", "whole.csv", "-m", "P@1", "--threshold", "4", "-q", "--format", "json")
    rows = json.loads(cranfield(*command, "--over-draws", "1", "--relevant", "one").out)
    assert rows[0]["mean"] == pytest.approx(0.75)  # ann's item is first, bob's in one of two draws
    for extra, message in (
        (("--bounds",), "--over-draws does not work with --bounds"),
        (("--lists", "condensed"), "--lists cond"),
    ):
        code, _, err = cranfield(*command, "--over-draws", "1", *extra)
        assert (code, message in err) == (2, True)
    code, _, err = cranfield(*command, "--relevant", "one")
    assert (code, "--relevant does nothing without --over-draws" in err) == (2, True)
    code, _, err = cranfield(*command, "--candidates", "test")
    assert (code, "--candidates does nothing without" in err) == (2, True)


DIALECTS_TEST = "user,item,rating\nann,x,5\nann,y,2\nbob,y,4\ncid,x,4\n"
RUN = "user,item,score\nann,x,0.9\nann,z,0.8\nbob,z,0.7\nbob,y,0.2\n"


@pytest.fixture
def speak(tmp_path, monkeypatch, cranfield):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test.csv").write_text(DIALECTS_TEST)
    (tmp_path / "mine.csv").write_text(RUN)

    def run(*arguments: str) -> str:
        code, out, err = cranfield("dialects", "--test", "test.csv", "mine.csv", "--threshold", "4", *arguments)
        assert (code, err) == (0, "")
        return out

    return run


def _expected(metric):
    test = cf.Ratings.of(["ann", "ann", "bob", "cid"], ["x", "y", "y", "x"], [5, 2, 4, 4])
    return compare_tools({"mine": {"ann": ["x", "z"], "bob": ["z", "y"]}}, test, metric, threshold=4)


def test_csv_and_json_hold_the_frame_of_the_function(speak):
    rows = list(csv.DictReader(io.StringIO(speak("-m", "nDCG@2", "--format", "csv"))))
    same = json.loads(speak("-m", "nDCG@2", "--format", "json"))
    assert same == _expected("nDCG@2").to_dicts()
    assert [float(row["value"]) for row in rows] == pytest.approx([row["value"] for row in same])


def test_the_table_has_a_row_a_dialect_and_says_how_each_differs(speak):
    out = speak("-m", "Recall@1")
    assert out.startswith("Recall@1 as other tools compute it; system mine")
    for row in _expected("Recall@1").iter_rows(named=True):
        line = next(one for one in out.splitlines()[3:] if one.startswith(row["spelling"] + " "))
        assert f"{row['value']:.4f}" in line
        assert row["how"] in out


def test_several_metrics_stand_in_one_table(speak):
    out = speak("-m", "P@2", "-m", "AP@2")
    assert out.splitlines()[1].split() == ["dialect", "metric", "value", "difference", "users"]


@pytest.mark.parametrize(("format", "sign"), [("latex", r"\begin{tabular}"), ("markdown", "| dialect |")])
def test_latex_and_markdown(speak, format, sign):
    assert sign in speak("-m", "P@2", "--format", format)


def test_a_published_number_is_looked_for(speak):
    out = speak("-m", "AP@2", "--published", "0.75")
    assert "The published number matches AP(dialect=lenskit)@2, AP(dialect=recommenders)@2" in out


def test_a_metric_without_dialects_is_one_line_and_exit_code_2(cranfield, speak):
    code, out, err = cranfield("dialects", "--test", "test.csv", "mine.csv", "-m", "RBP")
    assert (code, out) == (2, "")
    assert err.startswith("cranfield: no dialect of RBP is known")
    assert err.count("\n") == 1


def test_a_file_is_written_whole(speak, tmp_path):
    assert speak("-m", "P@2", "--format", "json", "--out", "values.json") == ""
    assert json.loads((tmp_path / "values.json").read_text()) == _expected("P@2").to_dicts()
