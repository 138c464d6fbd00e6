"""``cranfield compare --across`` and ``--table``: each form of input, each format, and one line for what is wrong."""

import json

import pytest

from cranfield.experiments import run

TABLE = "dataset,A,B,C\none,.137,.111,.117\ntwo,.307,.279,.374\nthree,.135,.121,.106\nfour,.094,.106,.079\n"
SETS = "".join(
    f'[data.{name}]\nsimulate = "world(users=50, items=30, ratings=700, seed={seed})"\n'
    for seed, name in enumerate(("ml-1m", "ml-100k", "songs"))
)


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "results.csv"
    file.write_text(TABLE)
    return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    file = tmp_path_factory.mktemp("across") / "three.toml"
    decisions = '[decisions]\nsignificance = "student"\nmetrics = ["P@5", "nDCG@10"]\n'
    file.write_text(f'systems = ["popularity", "knn(k=5)"]\n{decisions}{SETS}')
    return run(file).path


def test_a_table_has_one_verdict_first(cranfield, table):
    code, out, err = cranfield("compare", "--table", table)
    assert (code, err) == (0, "")
    assert out.startswith("On these four datasets ")
    assert "for datasets like these it is not settled (" in out.splitlines()[0]
    assert cranfield("compare", f"--table={table}") == (code, out, err)


def test_folders_of_experiments_are_compared_with_families(cranfield, folder):
    code, out, _ = cranfield("compare", "--across", folder)
    assert code == 0
    assert out.startswith("On these three datasets ")
    assert "one source (MovieLens), so they are not independent" in out
    code, out, _ = cranfield(
        "compare", "--across", folder, "--family", "ml-1m=ml", "--family", "ml-100k=ml", "-m", "nDCG@10"
    )
    assert code == 0
    assert out.startswith("On these two datasets ")


def test_every_format_and_the_figure_are_written(cranfield, table, tmp_path):
    for name, begin in (
        ("a.tex", r"\begin{table"),
        ("a.md", "ratios of averages"),
        ("a.csv", "metric,system_a"),
        ("a.json", "{"),
    ):
        assert cranfield("compare", "--table", table, "--out", tmp_path / name)[0] == 0
        assert (tmp_path / name).read_text().startswith(begin)
    rows = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert len(rows) == 3
    assert cranfield("compare", "--table", table, "--figure", tmp_path / "forest.svg")[0] == 0
    assert (tmp_path / "forest.svg").read_text().startswith("<svg")


def test_options_reach_the_comparison(cranfield, table):
    options = ("--baseline", "A", "--margin", "2%", "--alpha", "0.1", "--scale", "difference", "--weights", "equal")
    code, _, err = cranfield("compare", "--table", table, *options)
    assert (code, "margin='2%' is a share" in err) == (2, True)
    code, out, _ = cranfield("compare", "--table", table, *options[:6], "-m", "RMSE", "--format", "json")
    settings = json.loads(out)["settings"]
    assert code == 0
    assert (settings["baseline"], settings["alpha"], settings["margin"]) == ("A", 0.1, "2%")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--across",), "--across needs the folders of experiments"),
        (("--across", "--table", "results.csv"), "exclude each other"),
        (("--table", "results.csv", "there"), "does nothing with --table"),
        (("--across", "nowhere"), "nowhere: it is not the folder of an experiment"),
        (("--table", "nowhere.csv"), "nowhere.csv: the file cannot be read"),
        (("--table", "results.csv", "--family", "one"), "--family one cannot be read; write DATASET=FAMILY"),
        (("--table", "results.csv", "--family", "x=y"), "families: there is no dataset 'x'"),
        (("--table", "results.csv", "--baseline", "Z"), "there is no system 'Z'"),
        (("--table", "text.csv"), "row 2, column 'B': 'good' is not a number"),
        (("--table", "short.csv"), "there is 1 dataset, and one verdict is over several"),
        (("--table", "apart.csv"), "no two systems have results by value on two of the same datasets"),
        (("--table", "results.csv", "--figure", "x.doc"), "x.doc is not a figure file"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(cranfield, table, monkeypatch, arguments, said):
    monkeypatch.chdir(table.parent)
    (table.parent / "text.csv").write_text("dataset,A,B\none,0.1,good\n")
    (table.parent / "short.csv").write_text("dataset,A,B\none,0.1,0.2\n")
    (table.parent / "apart.csv").write_text("dataset,A,B\none,0.1,-\ntwo,-,0.2\n")
    code, out, err = cranfield("compare", *arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
