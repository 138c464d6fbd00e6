"""``cranfield evaluate`` on the files of other tools' own test-suites, unchanged, against the values they expect.

The files are not ours to keep here. They are looked for in checkouts called trec_eval, ir_measures, ranx and lkpy in
the folder that CRANFIELD_PEERS names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl
import pytest

from cranfield.cli import main

_TREC_EVAL = {
    "map": "AP",
    "Rprec": "Rprec",
    "bpref": "bpref",
    "recip_rank": "RR",
    "infAP": "infAP(pool=judged)",
    "ndcg": "nDCG",
    **{f"P_{n}": f"P@{n}" for n in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"recall_{n}": f"Recall@{n}" for n in (5, 10, 100, 1000)},
    **{f"ndcg_cut_{n}": f"nDCG@{n}" for n in (5, 10, 100, 1000)},
    **{f"map_cut_{n}": f"AP@{n}" for n in (5, 10, 100, 1000)},
    **{f"success_{n}": f"HitRate@{n}" for n in (1, 5, 10)},
}


@pytest.fixture
def own():
    """Return the path of a file of a peer's tests, or skip the test where it is absent."""

    def find(*parts: str) -> Path:
        path = Path(os.environ.get("CRANFIELD_PEERS", "peers"), *parts)
        if not path.exists():
            pytest.skip(f"there is no {Path(*parts)}; set CRANFIELD_PEERS to a folder with checkouts of the peers")
        return path

    return find


@pytest.fixture
def evaluate(capsys, tmp_path):
    """Run the command; return the averages by system and metric, and the values by system, metric and user."""

    def run(test, run, metrics, *options):
        asked = [word for metric in metrics for word in ("-m", metric)]
        values = tmp_path / "values.parquet"
        command = ["evaluate", "--test", test, run, *asked, "-q", "--format", "json", "--per-user", values, *options]
        main([str(word) for word in command])
        means = {(row["system"], row["metric"]): row["mean"] for row in json.loads(capsys.readouterr().out)}
        columns = pl.read_parquet(values).select("system", "metric", pl.col("user").cast(pl.String), "value")
        return means, {row[:3]: row[3] for row in columns.iter_rows()}

    return run


def _printed(path: Path) -> dict[tuple[str, str], str]:
    """Return what trec_eval printed, by measure and topic."""
    rows = (line.split("\t") for line in path.read_text().splitlines())
    return {(row[0].strip(), row[1].strip()): row[2].strip() for row in rows if len(row) == 3}


@pytest.mark.parametrize(
    ("qrels", "results", "out", "options"),
    [
        ("qrels.test", "results.test", "out.test.aq", ()),
        ("qrels.test.with-comments", "results.test", "out.test.aq", ()),
        ("qrels.comment.test", "results.comment.test", "out.comment.test", ()),
        # Grades from -1 to 4, relevant from 2.
        ("qrels.rel_level", "results.test", "out.test.aql", ("--threshold", "2", "--negative-grades", "pooled")),
    ],
)
def test_the_files_of_trec_eval_give_the_values_that_it_prints(own, evaluate, qrels, results, out, options):
    files = [own("trec_eval", "test", name) for name in (qrels, results, out)]
    printed = _printed(files[2])
    wanted = {theirs: ours for theirs, ours in _TREC_EVAL.items() if (theirs, "all") in printed}
    assert len(wanted) >= 13
    means, values = evaluate(*files[:2], wanted.values(), "--tag", *options)
    tag = printed["runid", "all"]
    for (measure, topic), value in printed.items():
        if measure in wanted:
            mine = means[tag, wanted[measure]] if topic == "all" else values[tag, wanted[measure], topic]
            mine = 0.0 if mine is None else mine  # without relevant items a metric is undefined here, and 0 there
            assert mine == pytest.approx(float(value), abs=5.1e-5), (measure, topic)
    geometric, _ = evaluate(*files[:2], ["AP"], "--tag", "--average", "geometric", *options)
    assert geometric[tag, "AP"] == pytest.approx(float(printed["gm_map", "all"]), abs=5.1e-5)


def test_the_files_of_ir_measures_give_the_values_that_its_tests_expect(own, evaluate):
    files = [own("ir_measures", "tests", name) for name in ("cwl.qrels", "cwl.run")]
    expected = {
        "P@1": (1.0, 1.0, 0.0),
        "P@5": (0.6, 0.6, 0.0),
        "P@10": (0.5, 0.6, 0.4),
        "P@20": (0.25, 0.3, 0.2),
        "RBP(p=0.9)": (0.3501, 0.3996, 0.1988),
        "RR": (1.0, 1.0, 0.1667),
        "AP": (0.7087, 0.7438, 0.3068),
    }
    _, values = evaluate(*files, expected)
    for metric, topics in expected.items():
        found = [values["cwl", metric, topic] for topic in ("T1", "T2", "T3")]
        assert found == pytest.approx(topics, abs=1e-4), metric


@pytest.mark.parametrize("kind", ["json", "trec", "trec.gz", "parquet"])
def test_the_files_of_ranx_are_read_in_every_format_it_writes(own, evaluate, kind):
    folder = ("ranx", "tests", "unit", "ranx", "test_data")
    means, _ = evaluate(own(*folder, f"qrels.{kind}"), own(*folder, f"run.{kind}"), ["nDCG", "AP", "RR"])
    assert means == {("run", "nDCG"): 1.0, ("run", "AP"): 1.0, ("run", "RR"): 1.0}


def test_the_files_of_lenskit_give_its_reciprocal_ranks_by_system_and_user(own, evaluate):
    truth, lists, expected = (
        own("lkpy", "tests", "eval", f"topn-java-{name}.csv") for name in ("truth", "recs", "metrics")
    )
    _, values = evaluate(truth, lists, ["RR"])
    rows = pl.read_csv(expected).select("Algorithm", "user", "Java.RecipRank").rows()
    assert len(rows) == 100
    for system, user, value in rows:
        assert values[system, "RR", str(user)] == pytest.approx(value, abs=1e-12)
