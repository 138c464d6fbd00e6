"""Objects show themselves in a notebook: a table each, everything escaped, and never an error."""

from __future__ import annotations

import altair
import numpy as np
import pytest

import cranfield as cf
from cranfield.assessments import discriminative_power

NASTY = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def ratings():
    users = [f"{NASTY}{k % 9}" for k in range(90)]
    return cf.Ratings.of(users, [f"{NASTY}{k // 9}" for k in range(90)], np.arange(90) % 5 + 1, np.arange(90))


@pytest.fixture(scope="module")
def split(ratings):
    return cf.splits.random(ratings, train=0.7, validation=0.1)


@pytest.fixture(scope="module")
def runs(split):
    return cf.recommend(split, {NASTY: "random", "b": "popularity"}, length=4)


def test_ratings_show_their_first_rows(ratings, rows_shown):
    assert rows_shown(ratings) == 5
    text = ratings._repr_html_()
    assert "&lt;script&gt;" in text
    assert "and 85 more" in text
    assert rows_shown(cf.Ratings.of(["a"], ["x"], [3])) == 1
    assert rows_shown(ratings.keep(np.zeros(90, dtype=bool))) == 0


def test_ratings_of_users_without_any_show_the_right_user():
    ratings = cf.Ratings.of(["a", "b", "c"], ["x", "y", "z"], [1, 2, 3]).keep(np.array([False, True, True]))
    assert "<td>b</td><td>y</td><td>2.0</td>" in ratings._repr_html_()


def test_a_split_shows_its_parts(split, rows_shown):
    assert rows_shown(split) == 3
    assert f"<td>{len(split.train):,}</td>" in split._repr_html_()


def test_a_run_shows_its_first_lists(runs, rows_shown):
    assert rows_shown(runs[0]) == 5
    assert "1. &lt;script&gt;" in runs[0]._repr_html_()
    empty = cf.read_runs({"none": {"ann": ["x"]}})[0]
    assert rows_shown(empty) == 1


def test_a_run_of_one_relevant_item_a_list_shows_its_rank(split):
    runs = cf.recommend(split, ["random"], relevant="one", nonrelevant=3, threshold=3)
    assert ". &lt;script&gt;" in runs[0]._repr_html_()
    assert f", and {runs[0].list_lengths[:5].max() - 1} more" in runs[0]._repr_html_()


def test_results_show_themselves(split, runs, assessment, rows_shown):
    scores = cf.measure(runs, split.test, ["P@2", "RR"], threshold=3)
    assert rows_shown(scores) == 2
    assert rows_shown(cf.compare(scores)) == 2
    assert rows_shown(discriminative_power(scores)) == 2
    assert rows_shown(assessment) == 3
    assert rows_shown(assessment.advice()) == 3
    with altair.renderers.enable("svg"):
        assert "<svg" in assessment.plot()._repr_mimebundle_()["image/svg+xml"]


def test_one_system_shows_itself(split, runs, rows_shown):
    alone = cf.measure(runs[:1], split.test, ["P@2"], threshold=3)
    assert rows_shown(alone) == 1


def test_experiments_show_what_they_found(tmp_path, rows_shown):
    rows = "".join(f"{u},{i},{(u + i) % 5 + 1}\n" for u in range(9) for i in range(9))
    (tmp_path / "ratings.csv").write_text(f"user,item,rating\n{rows}")
    (tmp_path / "experiment.toml").write_text(
        '[data.mine]\nfile = "ratings.csv"\n[systems]\nchance = "random"\npopularity = "popularity"\n'
    )
    found = cf.experiments.run(tmp_path / "experiment.toml", tmp_path / "found")
    assert rows_shown(found) == 2
