"""P1R, U1R, UAR and the removal of the head: the same from an experiment, the command line, Python and by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cranfield as cf
from cranfield.cli import main
from cranfield.experiments import Decisions, Experiment, Source, System, run
from cranfield.recommenders import recommender

WORLD = "world(users=60, items=48, ratings=900)"
PROTOCOLS = {
    "1R": {"split": "random(train=0.7)", "relevant": "one", "candidates": "test", "nonrelevant": 9},
    "P1R": {
        "split": "percentiles(groups=4, train=0.7)", "relevant": "one", "candidates": "group", "nonrelevant": 9,
        "groups": "equal",
    },
    "U1R": {"split": "uniform_test(sigma=0.2)", "relevant": "one", "candidates": "test", "nonrelevant": 9},
    "UAR": {"split": "uniform_test(sigma=0.2)", "candidates": "test"},
    "AI-UAR": {"split": "uniform_test(sigma=0.2)", "candidates": "all"},
    "1R without the head": {
        "split": "tail_test(head=0.1, train=0.7)", "relevant": "one", "candidates": "test", "nonrelevant": 9,
    },
}  # fmt: skip
METRICS = ("P@3", "RR@5", "Recall@5")


@pytest.fixture(scope="module")
def ratings():
    return cf.simulate.world(users=60, items=48, ratings=900).ratings


def _by_hand(split, decisions):
    """Return the metrics from lists that are made one by one."""
    scores = recommender("popularity").fit(split.train).score(np.arange(split.train.n_users, dtype=np.int32))
    place = np.argsort(np.argsort([str(item) for item in split.train.item_ids.all.to_list()]))
    rows = {}
    ranking = cf.rankings.Ranking(
        **{name: value for name, value in decisions.items() if name not in ("split", "groups")}, threshold=4
    )
    users = np.flatnonzero(split.train.user_counts > 0).astype(np.int32)
    targets = cf.rankings.Targets(split.train, split.test, ranking, 0, split.item_groups).drawn_for(users)
    for user in users:
        mine = split.test.items[split.test.users == user]
        liked = set(mine[split.test.values[split.test.users == user] >= 4].tolist())
        one = np.array([user], dtype=np.int32)
        if decisions.get("relevant") == "one":
            lists = []
            for item in liked:
                pool = targets.pool(one)[0].copy()
                if decisions["candidates"] == "group":
                    pool &= split.item_groups == split.item_groups[item]
                lists.append(({item}, {*np.flatnonzero(pool).tolist(), item}))
        else:
            lists = [(liked, set(np.flatnonzero(targets.allowed(one)[0]).tolist()))] if len(mine) else []
        for wanted, allowed in lists:
            known = [item for item in allowed if not np.isnan(scores[user, item])]
            ranked = sorted(known, key=lambda item: (-scores[user, item], -place[item]))
            hits = [rank for rank, item in enumerate(ranked, start=1) if item in wanted]
            group = split.item_groups[min(wanted)] if "groups" in decisions else 0
            rows.setdefault(int(group), []).append([
                sum(rank <= 3 for rank in hits) / 3,
                1 / hits[0] if hits and hits[0] <= 5 else 0.0,
                sum(rank <= 5 for rank in hits) / len(wanted) if wanted else 0.0,
            ])  # fmt: skip
    return np.mean([np.mean(own, axis=0) for own in rows.values()], axis=0)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_route_gives_what_lists_made_by_hand_give(name, ratings, tmp_path, capsys):
    decisions = PROTOCOLS[name]
    (split,) = cf.splits.apply(ratings, decisions["split"])
    expected = _by_hand(split, decisions)
    averaging = {"groups": decisions["groups"]} if "groups" in decisions else {}
    lists = {key: value for key, value in decisions.items() if key not in ("split", "groups")}

    (made,) = cf.recommend(split, "popularity", **lists, threshold=4)
    scores = cf.measure(made, split.test, METRICS, threshold=4)
    np.testing.assert_allclose(scores.average("mean", undefined="zero", by="list", **averaging)[0], expected)

    # Each user is weighted by the number of her lists, so that all lists have the same weight.
    average = "weighted(by=relevant)" if "relevant" in decisions else "mean"
    experiment = Experiment(
        data=(Source("tiny", simulate=WORLD),),
        systems=(System("popularity", "popularity"),),
        decisions=Decisions(metrics=METRICS, threshold=4, undefined="zero", average=average, **decisions),
    )
    averages = run(experiment, tmp_path / "out").averages()
    found = dict(zip(averages["metric"], averages["mean"]))
    assert [found[metric] for metric in METRICS] == pytest.approx(expected.tolist())

    cf.data.write(ratings, tmp_path / "ratings.parquet")
    assert _by_command(decisions, tmp_path, capsys) == pytest.approx(expected.tolist())


def _by_command(decisions, folder, capsys):
    """Return the metrics that split, recommend and evaluate give."""
    parts, runs, given = folder / "parts", folder / "runs", []
    for name in ("relevant", "candidates", "nonrelevant"):
        given += [f"--{name}", decisions[name]] if name in decisions else []
    given += ["--item-groups", parts / "groups.parquet"] if decisions["candidates"] == "group" else []
    threshold = ["--threshold", 4] if "relevant" in decisions else []
    averaging = ["--groups", decisions["groups"]] if "groups" in decisions else []
    metrics = [part for metric in METRICS for part in ("-m", metric)]
    test = ["--test", parts / "test.parquet"]
    for command in (
        ["split", folder / "ratings.parquet", "--method", decisions["split"], "--out", parts],
        ["recommend", "--train", parts / "train.parquet", *test, "-s", "popularity", *given, *threshold, "--out", runs],
        ["evaluate", *test, runs / "popularity.parquet", *metrics, "--threshold", 4, "--undefined", "zero", *averaging,
         "--by", "list", "--format", "json"],
    ):  # fmt: skip
        capsys.readouterr()
        main([str(part) for part in [*command, "--quiet"]])
    values = {row["metric"]: row["mean"] for row in json.loads(capsys.readouterr().out)}
    return [values[metric] for metric in METRICS]


def test_groups_that_no_list_will_have_are_refused_before_anything_is_trained(tmp_path):
    experiment = Experiment(
        data=(Source("tiny", simulate=WORLD),),
        systems=(System("popularity", "popularity"),),
        decisions=Decisions(relevant="one", groups="equal"),
    )
    with pytest.raises(cf.SettingError, match="these lists have no groups"):
        run(experiment, tmp_path / "out")
    assert not any((tmp_path / "out").rglob("models"))


def test_the_command_line_says_which_file_has_the_groups(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["recommend", "--train", "t.csv", "--test", "e.csv", "-s", "popularity", "--relevant", "one",
              "--candidates", "group", "--out", str(tmp_path / "r")])  # fmt: skip
    assert stop.value.code == 2
    assert "give --item-groups FILE" in capsys.readouterr().err
