"""The same clicks and systems give the same table and verdict, whichever way they are compared."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cranfield as cf

SYSTEMS = ("popularity", "ease", "bprmf(factors=4, epochs=5)")


@pytest.fixture(scope="module")
def clicks(tmp_path_factory):
    """Clicks of users and items that arrive over time: many users and some items of the test part are new."""
    draw = np.random.default_rng(3)
    first_click = {}
    for time in range(900):
        user = int(draw.integers(max(0, time // 12 - 30), time // 12 + 8))
        item = int(draw.integers(0, 12 + time // 40, 2).min())
        first_click.setdefault((f"u{user}", f"i{item}"), time)
    folder = tmp_path_factory.mktemp("clicks")
    rows = "".join(f"{user},{item},{time}\n" for (user, item), time in first_click.items())
    (folder / "clicks.csv").write_text(f"user,item,time\n{rows}")
    return folder


def _verdict(found):
    """Return what a comparison in JSON says, without what names its files."""
    numbers = {"difference", "lower", "upper", "mean_a", "mean_b", "p", "p_corrected", "ties", "n"}
    return found["verdict"], [{name: row[name] for name in numbers} for row in found["rows"]]


def test_three_routes_give_the_same_table_and_the_same_verdict(clicks, cranfield, tmp_path):
    train, test = tmp_path / "parts" / "train.csv", tmp_path / "parts" / "test.csv"
    cranfield("split", clicks / "clicks.csv", "--method", "temporal", "--out", tmp_path / "parts", "--format", "csv")
    wanted = [word for system in SYSTEMS for word in ("-s", system)]
    verdicts, tables = [], []
    for name, further in (("train", ()), ("both", ("--test", test))):
        cranfield("recommend", "--train", train, *further, *wanted, "--out", tmp_path / name)
        runs = [tmp_path / name / f"{system.replace(' ', '')}.parquet" for system in SYSTEMS]
        compare = ["compare", "--test", test, *runs, "-m", "P@10", "-m", "nDCG@10"]
        verdicts.append(_verdict(json.loads(cranfield(*compare, "--format", "json").out)))
        tables.append(cranfield(*compare).out)
    assert tables[0] == tables[1]
    assert verdicts[0] == verdicts[1]

    systems = {system: system for system in SYSTEMS}
    split = cf.splits.temporal(cf.read(clicks / "clicks.csv"))
    compared = cf.compare(cf.measure(cf.recommend(split, systems), split.test, ["P@10", "nDCG@10"]))
    assert f"{compared}\n" == tables[0]

    listed = "\n".join(f'"{name}" = "{system}"' for name, system in systems.items())
    (tmp_path / "clicks.toml").write_text(
        '[decisions]\nsplit = "temporal"\nmetrics = ["P@10", "nDCG@10"]\n'
        f'[data.clicks]\nfile = "{(clicks / "clicks.csv").as_posix()}"\n'
        f"[systems]\n{listed}\n"
    )
    said = cranfield("run", tmp_path / "clicks.toml", "--no-report").out
    found = cf.experiments.Results(tmp_path / "clicks").findings("clicks").comparison
    assert str(found) == str(compared)
    assert said.startswith(str(compared).partition("\n· ")[0])
    assert any("trained once" in sentence for sentence in compared.verdict)


def test_the_population_is_the_test_users_and_new_users_have_no_list(clicks):
    split = cf.splits.temporal(cf.read(clicks / "clicks.csv"))
    scores = cf.measure(cf.recommend(split, SYSTEMS[:2]), split.test, "nDCG@10")
    new_users = (split.test.user_counts > 0) & (split.train.user_counts == 0)
    assert new_users.any()
    assert scores.n_lists == np.count_nonzero(split.test.user_counts)
    assert np.array_equal(scores.covered, np.tile(~new_users[scores.users], (2, 1)))
    served = cf.measure(cf.recommend(split, SYSTEMS[:2], new_users="served"), split.test, "nDCG@10")
    assert served.covered[0].all()  # popularity
    assert np.array_equal(served.covered[1], scores.covered[1])  # ease


def test_new_users_cannot_be_served_where_no_test_part_names_them(clicks, cranfield, tmp_path):
    found = cranfield(
        "recommend", "--train", clicks / "clicks.csv", "-s", "popularity", "--new-users", "served", "--out", tmp_path
    )
    assert found.code == 2
    assert "--new-users does nothing without --test, which contains the new users; leave --new-users out" in found.err


def test_the_verdict_says_for_whom_lists_were_made_where_the_record_of_a_run_does(clicks, cranfield, tmp_path):
    parts = tmp_path / "parts"
    cranfield("split", clicks / "clicks.csv", "--method", "temporal", "--out", parts, "--format", "csv")
    files = ("--train", parts / "train.csv")
    cranfield("recommend", *files, "-s", "popularity", "--min-ratings", "3", "--sample", "20", "--out", tmp_path)
    cranfield("recommend", *files, "-s", "ease", "--out", tmp_path)
    runs = [tmp_path / f"{system}.parquet" for system in ("popularity", "ease")]
    found = json.loads(cranfield("compare", "--test", parts / "test.csv", *runs, "--format", "json").out)
    said = "The lists of popularity were made for 20 users with at least 3 training ratings, drawn at random; the other"
    assert sum(sentence.startswith(said) for sentence in found["verdict"]) == 1
    reduced = cranfield("compare", "--test", parts / "test.csv", *runs, "--coverage", "reduced").out
    assert reduced.count(said) == 1
