"""``cranfield evaluate`` on files as other tools write them, against the values that these tools give or publish.

The files are made here: in trec_eval's format, measured by its own code (pytrec_eval); from the values that the tests
of ir_measures expect; in every format of ranx; and in the layout of LensKit's comparison with its Java version.
"""

from __future__ import annotations

import gzip
import json
from itertools import combinations

import numpy as np
import polars as pl
import pytest
import pytrec_eval

from cranfield.cli import main

_TREC_EVAL = {
    "map": "AP",
    "Rprec": "Rprec",
    "bpref": "bpref",
    "recip_rank": "RR",
    "infAP": "infAP(pool=judged)",
    "ndcg": "nDCG",
    **{f"P_{n}": f"P@{n}" for n in (5, 10, 15, 20, 30, 100)},
    **{f"recall_{n}": f"Recall@{n}" for n in (5, 10, 100)},
    **{f"ndcg_cut_{n}": f"nDCG@{n}" for n in (5, 10, 100)},
    **{f"map_cut_{n}": f"AP@{n}" for n in (5, 10, 100)},
    **{f"success_{n}": f"HitRate@{n}" for n in (1, 5, 10)},
}


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


def _trec_world(lowest, highest):
    """Return grades and scores by topic: scores tie, and some documents and one topic are not judged."""
    random = np.random.default_rng(5)
    documents = [f"FT911-{number}" for number in range(300)]
    topics = [str(301 + number) for number in range(6)]
    qrels = {
        topic: {name: int(random.integers(lowest, highest + 1)) for name in random.permutation(documents)[:60]}
        for topic in topics[:-1]
    }
    run = {
        topic: {name: float(random.integers(0, 400)) / 4 for name in random.permutation(documents)[:120]}
        for topic in topics
    }
    return qrels, run


@pytest.mark.parametrize("comments", [False, True])
@pytest.mark.parametrize(
    ("grades", "level", "options"),
    [
        ((0, 1), 1, ()),
        # Grades from -1 to 4, relevant from 2.
        ((-1, 4), 2, ("--threshold", "2", "--negative-grades", "pooled")),
    ],
)
def test_files_of_trec_eval_give_the_values_of_its_code(evaluate, tmp_path, comments, grades, level, options):
    qrels, run = _trec_world(*grades)
    judged = [f"{topic} 0 {name} {grade}" for topic, own in qrels.items() for name, grade in own.items()]
    # trec_eval orders by score; its own test file has ranks from 0.
    lines = [
        f"{topic}\tQ0 {name}  {rank} {score}\tSTANDARD"
        for topic, own in run.items()
        for rank, (name, score) in enumerate(own.items())
    ]
    if comments:
        judged, lines = ["# judged by one person", *judged, "# the end"], [lines[0], "# a remark", *lines[1:]]
    (tmp_path / "qrels.test").write_text("\n".join(judged) + "\n")
    (tmp_path / "results.test").write_text("\n".join(lines))
    theirs = pytrec_eval.RelevanceEvaluator(qrels, pytrec_eval.supported_measures, relevance_level=level).evaluate(run)
    files = tmp_path / "qrels.test", tmp_path / "results.test"
    means, values = evaluate(*files, _TREC_EVAL.values(), "--read-runs", "tag=true", *options)
    for name, metric in _TREC_EVAL.items():
        for topic, own in theirs.items():
            # Without relevant items a metric is undefined here, and 0 there.
            assert (values["STANDARD", metric, topic] or 0.0) == pytest.approx(own[name], abs=1e-6), (name, topic)
        assert means["STANDARD", metric] == pytest.approx(np.mean([own[name] for own in theirs.values()]), abs=1e-6)
    geometric, _ = evaluate(*files, ["AP"], "--read-runs", "tag=true", "--average", "geometric", *options)
    expected = np.exp(np.mean([np.log(max(own["map"], 1e-5)) for own in theirs.values()]))
    assert geometric["STANDARD", "AP"] == pytest.approx(expected, abs=1e-6)


def _ranks_with(precision_at, average_precision):
    """Return the ranks, among ten, of relevant items that give some precisions, and their number as recall base."""
    found = []
    for ranks in combinations(range(1, 11), round(10 * precision_at[10])):
        precisions = {n: sum(rank <= n for rank in ranks) / n for n in precision_at}
        value = np.mean([(place + 1) / rank for place, rank in enumerate(ranks)])
        if precisions == pytest.approx(precision_at) and value == pytest.approx(average_precision, abs=1e-4):
            found.append(ranks)
    assert len(found) == 1
    return found[0]


def test_lists_with_the_values_that_ir_measures_expects_have_its_other_values_too(evaluate, tmp_path):
    expected = {
        "P@1": (1.0, 1.0, 0.0),
        "P@5": (0.6, 0.6, 0.0),
        "P@10": (0.5, 0.6, 0.4),
        "P@20": (0.25, 0.3, 0.2),
        "RBP(p=0.9)": (0.3501, 0.3996, 0.1988),
        "RR": (1.0, 1.0, 0.1667),
        "AP": (0.7087, 0.7438, 0.3068),
    }
    judged, lines = [], []
    for place, topic in enumerate(("T1", "T2", "T3")):
        ranks = _ranks_with({n: expected[f"P@{n}"][place] for n in (1, 5, 10)}, expected["AP"][place])
        for rank in range(1, 11):
            judged.append(f"{topic}   00  D{rank}   {int(rank in ranks)}")
            lines.append(f"{topic}  E{rank % 3 + 1}  D{rank}  {rank}   {4.4 - rank / 10:.1f} R1")
    (tmp_path / "cwl.qrels").write_text("\n".join(judged))
    (tmp_path / "cwl.run").write_text("\n".join(lines))
    _, values = evaluate(tmp_path / "cwl.qrels", tmp_path / "cwl.run", expected)
    for metric, topics in expected.items():
        found = [values["cwl", metric, topic] for topic in ("T1", "T2", "T3")]
        assert found == pytest.approx(topics, abs=1e-4), metric


@pytest.mark.parametrize("kind", ["json", "trec", "trec.gz", "parquet"])
def test_files_of_ranx_are_read_in_every_format_it_writes(evaluate, tmp_path, kind):
    """The layouts are those that ranx saves (see `test_ranx_runs.py`); its best list has the value 1."""
    qrels = {"q1": {"d1": 1, "d2": 2, "d3": 3}, "q2": {"d1": 1, "d2": 2}}
    run = {query: {name: grade / 10 for name, grade in reversed(own.items())} for query, own in qrels.items()}
    for name, content in (("qrels", qrels), ("run", run)):
        path = tmp_path / f"{name}.{kind}"
        rows = [(query, document, value) for query, own in content.items() for document, value in own.items()]
        if kind == "json":
            path.write_text(json.dumps(content, indent=4))
        elif kind == "parquet":
            pl.DataFrame(rows, schema=["q_id", "doc_id", "score"], orient="row").write_parquet(path)
        else:
            lines = [
                f"{query} 0 {document} {value}" if name == "qrels" else f"{query} Q0 {document} {rank} {value} None"
                for rank, (query, document, value) in enumerate(rows, start=1)
            ]
            text = "\n".join(lines).encode()
            path.write_bytes(gzip.compress(text) if kind == "trec.gz" else text)
    files = tmp_path / f"qrels.{kind}", tmp_path / f"run.{kind}"
    means, _ = evaluate(*files, ["nDCG", "AP", "RR"], "--threshold", "1")
    assert means == {("run", "nDCG"): 1.0, ("run", "AP"): 1.0, ("run", "RR"): 1.0}


def test_files_of_lenskit_give_its_reciprocal_ranks_by_system_and_user(evaluate, tmp_path):
    """LensKit compares its metrics with those of its Java version on one table of several algorithms.

    Every test rating is relevant there, and users without a hit have 0.
    """
    random = np.random.default_rng(7)
    lists = {(name, user): random.permutation(400)[:50] for name in ("MF-B", "Pop-B", "UU-E") for user in range(12)}
    tested = {user: random.permutation(400)[:5] for user in range(12)}
    rows = [(*of, rank, item, 7 - rank / 8) for of, items in lists.items() for rank, item in enumerate(items, start=1)]
    recommended = pl.DataFrame(rows, schema=["Algorithm", "user", "rank", "item", "score"], orient="row")
    recommended.sample(fraction=1, shuffle=True, seed=1).write_csv(tmp_path / "recs.csv")
    truth = [(user, item, float(random.integers(1, 11)) / 2) for user, items in tested.items() for item in items]
    pl.DataFrame(truth, schema=["user", "item", "rating"], orient="row").write_csv(tmp_path / "truth.csv")
    _, values = evaluate(tmp_path / "truth.csv", tmp_path / "recs.csv", ["RR"], "--threshold", "0.5")
    assert len(values) == len(lists)
    for (name, user), items in lists.items():
        hits = np.flatnonzero(np.isin(items, tested[user]))
        expected = 1 / (hits[0] + 1) if len(hits) else 0.0
        assert values[name, "RR", str(user)] == pytest.approx(expected, abs=1e-12)
