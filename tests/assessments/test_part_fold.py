"""Smaller test sets by hashed masks: parts of the users add up to the result in memory, and Spark gives the same."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cranfield as cf
from cranfield.assessments import part_fold
from cranfield.assessments.assessment import STUDIES
from cranfield.assessments.scenarios import scenario
from cranfield.cli import main
from cranfield.measures.engines import part_plan
from cranfield.measures.judgments import Judgments
from cranfield.measures.parts import Tally, measure_part
from cranfield.measures.score_parts import ScoreParts
from cranfield.rankings.read import read_runs

METRICS = ["P@3", "nDCG@3", "ERR@3", "bpref", "RBP", "nDCG(condensed=true)@3", "Rprec", "AP(rel=5)"]
OPTIONS = {
    "sizes": [1, 0.5, 0.04],
    "samples": 4,
    "threshold": 4,
    "averages": ["mean", "geometric", "weighted(by=judged)"],
    "significance": "student",
}


@pytest.fixture(scope="module")
def world():
    """Return rows of three systems and a test set with few highest ratings, so that some masks leave none of them."""
    random = np.random.default_rng(2)
    test = pl.DataFrame(
        [
            (user, int(item), float(random.integers(1, 5)) + (user % 10 == 0))
            for user in range(2, 32)
            for item in random.permutation(20)[: random.integers(1, 8)]
        ],
        schema=["user", "item", "rating"],
        orient="row",
    )
    rated = set(test.select("user", "item").rows())
    runs = pl.DataFrame(
        [
            # The first system ranks rated items above the rest, so it differs significantly from the others.
            (system, user, int(item), float(random.integers(0, 6)) + 6 * (system == "a" and (user, item) in rated))
            for system in ("a", "b", "c")
            for user in range(30)
            for item in random.permutation(20)[: random.integers(2, 9)]
        ],
        schema=["system", "user", "item", "score"],
        orient="row",
    )
    return runs, test


@pytest.fixture(scope="module")
def in_memory(world):
    return cf.assess(*world, METRICS, masks="hash", scenarios=["ratings", "items", "users"], **OPTIONS)


def assert_same(mine, theirs):
    for study in STUDIES:
        assert_frame_equal(mine.frame(study), theirs.frame(study), rel_tol=1e-9, abs_tol=1e-12, check_dtypes=False)
    assert mine.step.settings == theirs.step.settings


def measured_in_parts(runs, test, measuring, *, ties, train, similarity, strict, negative_grades, study):
    """Measure thirds of the users by themselves, and add up what they give, as workers of Spark do."""
    test, runs = cf.read(test), read_runs(runs)
    plan = part_plan([], test, measuring, study=study, strict=strict, negative_grades=negative_grades)
    thirds = [list(range(first, 32, 3)) for first in range(3)]
    parts = [measure_part(*_of_users(runs, test, third), plan) for third in thirds]
    tally = sum((part.tally for part in parts[1:]), parts[0].tally)
    assert isinstance(tally, Tally)
    whole = cf.measure(runs, test, measuring.wanted, threshold=measuring.threshold)
    return ScoreParts(whole, _Whole(whole), tally.of_scores[0], tally.studied)


class _Whole:
    def __init__(self, scores):
        self.scores = scores

    def each(self, function):
        return [function(self.scores)]


def _of_users(runs, test, users):
    lists = [
        read_runs(run.frame().filter(pl.col("user").is_in(users)).with_columns(system=pl.lit(run.name)))[0]
        for run in runs
    ]
    return lists, cf.read(test.frame().filter(pl.col("user").is_in(users)))


def test_parts_of_the_users_add_up_to_the_result_in_memory(world, in_memory, monkeypatch):
    passes = []

    def measured(*inputs, study, **options):
        passes.append(len(study.tests))
        return measured_in_parts(*inputs, study=study, **options)

    monkeypatch.setattr(part_fold, "measure_on_spark", measured)
    monkeypatch.setattr("cranfield.assessments.assessing.is_for_spark", lambda *_: True)
    assert_same(cf.assess(*world, METRICS, **OPTIONS), in_memory)
    assert passes[0] == 25
    assert 0 < passes[1] < 12


@pytest.mark.parametrize("name", ["ratings", "items", "users"])
def test_a_hashed_mask_depends_on_seed_sample_user_and_item_alone(name):
    random = np.random.default_rng(3)
    cells = np.unique(random.integers(0, 300, (4000, 2)), axis=0)
    masks = {}
    for kept in (slice(None), slice(1000, 2500)):
        judgments = Judgments.of(cf.Ratings.of(*cells[kept].T), 1)
        mask = scenario(name).mask(judgments, 0.3, 5, 7, "hash")
        smaller = scenario(name).mask(judgments, 0.1, 5, 7, "hash")
        assert not (smaller & ~mask).any()
        ids = zip(judgments.user_ids.ids(judgments.users[judgments.lists]), judgments.item_ids.ids(judgments.items))
        masks[kept.start] = dict(zip(ids, mask.tolist()))
        others = [scenario(name).mask(judgments, 0.3, *other, "hash") for other in ((6, 7), (5, 8))]
        assert all((other != mask).any() for other in others)
    assert masks[1000].items() <= masks[None].items()
    assert np.mean(list(masks[None].values())) == pytest.approx(0.3, abs=0.1)


def test_a_test_set_of_which_nothing_remains_is_undefined(world):
    samples = cf.assess(*world, "P@3", masks="hash", sizes=[1e-9], samples=2, scenarios="ratings").frame("samples")
    assert samples["ratings"].to_list() == [0, 0]
    assert all(samples[name].is_nan().all() for name in ("tau", "flipped", "verdicts_lost"))


@pytest.mark.spark
def test_spark_gives_the_result_in_memory(spark, world, in_memory, tmp_path, capsys):
    from cranfield.data.spark import to_spark

    runs, test = (to_spark(frame, spark) for frame in world)
    assert_same(cf.assess(runs, test, METRICS, **OPTIONS), in_memory)
    for options, says in (
        ({"scenarios": "popular"}, "the scenario popular looks at all users at once"),
        ({"averages": "median"}, "average='median' needs the values of all users at once"),
        ({"masks": "count"}, "masks='count' counts all ratings at once"),
        ({"out": tmp_path}, "an assessment on Spark is one pass"),
        ({"metrics": "Gini"}, "Gini belongs to all lists together"),
    ):
        with pytest.raises(cf.SettingError, match=says):
            cf.assess(runs, test, **options)
    for name, frame in zip(("runs", "test"), world):
        frame.write_parquet(tmp_path / f"{name}.parquet")
    arguments = ["assess", "--test", str(tmp_path / "test.parquet"), str(tmp_path / "runs.parquet"), "-m", "P@3"]
    shown = []
    for engine in (["spark"], ["memory", "--masks", "hash", "--scenario", "ratings"]):
        main(
            [
                *arguments,
                "--engine",
                *engine,
                "--samples",
                "2",
                "--sizes",
                "1,0.5",
                "--significance",
                "student",
                "--format",
                "csv",
            ]
        )
        shown.append([line for line in capsys.readouterr().out.splitlines() if not line.startswith(("items", "users"))])
    assert [line[:30] for line in shown[0]] == [line[:30] for line in shown[1]]
