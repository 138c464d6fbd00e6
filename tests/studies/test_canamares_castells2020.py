"""The study of target sampling on a small world, against recommending and measuring by hand."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import polars as pl
import pytest
from scipy.stats import ttest_rel

from cranfield import measure, recommend, simulate
from cranfield._figures import definition
from cranfield.recommenders import recommender
from cranfield.splits import k_fold
from cranfield.studies import replicate
from cranfield.studies.canamares_castells2020 import work
from cranfield.studies.canamares_castells2020.work import METRICS, SIZES, PairSums, _rankers, grid_of, systems_of


@pytest.fixture(scope="module")
def world():
    return simulate.world(users=30, items=50, ratings=700, seed=1).ratings


@pytest.fixture(scope="module")
def found(world, tmp_path_factory):
    out = tmp_path_factory.mktemp("castells") / "out"
    return replicate("canamares-castells2020", world, out=out, folds=2, figures=False)


@pytest.mark.parametrize("name", ["Random", "Normalized kNN (full)", "iMF (test)"])
@pytest.mark.parametrize("size", [0, 3706])
def test_a_number_is_that_of_lists_of_test_items_and_unrated_ones(found, world, name, size):
    split = next(iter(k_fold(world, k=2, seed=0)))
    system = {name: recommender(systems_of(4.0, 0)[name])}
    (run,) = recommend(split, system, 10, min_ratings=1, unrated=size, fill="random")
    (short,) = recommend(split, system, 10, min_ratings=1, unrated=size)
    served = split.test.keep(split.train.user_counts[split.test.users] > 0)
    sums = np.nan_to_num(measure(run, served, METRICS, threshold=4).values[0]).sum(axis=1)
    own = pl.read_parquet(found.folder / "measured" / "fold-1.parquet").filter(system=name, unrated=size)
    expected = [*(sums / len(run.users)), np.minimum(np.diff(short.indptr), 10).mean() / 10]
    assert own["value"].to_list() == pytest.approx(expected)


def test_targets_are_drawn_outside_the_test_set_and_training_items_leave_them(world):
    split = next(iter(k_fold(world, k=2, seed=0)))
    rankers = _rankers(split, seed=0)
    users = rankers[0].users
    trained, tested = split.train.user_counts[users], split.test.user_counts[users]
    sizes = [np.diff(ranker.targets.drawn.indptr) for ranker in rankers[: len(SIZES)]]
    for size, unrated in zip(SIZES, sizes):
        assert (unrated <= np.minimum(size, world.n_items - trained - tested)).all()
    expected = 20 * (1 - trained / (world.n_items - tested))
    assert sizes[SIZES.index(20)].sum() == pytest.approx(expected.sum(), rel=0.05)
    assert (sizes[-1] == world.n_items - trained - tested).all()
    first = [set(ranker.targets.drawn.cells(users[:1])[1].tolist()) for ranker in rankers[: len(SIZES)]]
    assert all(fewer <= more for fewer, more in pairwise(first))


def test_every_system_and_size_stands_in_the_tables_and_figures(found):
    for stem in ("figure-03-precision", "figure-03-recall", "figure-03-ndcg", "figure-05"):
        assert found.exhibit(f"{stem}-numbers").frame.height == 8 * len(SIZES)
        assert (found.folder / "figures" / f"{stem}.csv").read_text().strip()
        assert definition(found.exhibit(stem).draw())["mark"]["type"] == "line"


def test_ties_and_p_values_of_all_pairs_are_those_of_the_users(found, world):
    split = next(iter(k_fold(world, k=2, seed=0)))
    systems = {name: recommender(spelling) for name, spelling in systems_of(4.0, 0).items()}
    runs = recommend(split, systems, 10, min_ratings=1, unrated=0, fill="random")
    served = split.test.keep(split.train.user_counts[split.test.users] > 0)
    values = np.nan_to_num(measure(runs, served, ["P@10"], threshold=4).values[:, 0])
    pairs = list(combinations(values, 2))
    own = pl.read_parquet(found.folder / "measured" / "fold-1.parquet").filter(system="all pairs", unrated=0)
    numbers = dict(own.select("metric", "value").rows())
    users = len(runs[0].users)
    absent = users - values.shape[1]  # users without a test rating, who count as 0
    ties = np.mean([(np.isclose(a, b).sum() + absent) / users for a, b in pairs])
    assert numbers["ratio of ties of P@10"] == pytest.approx(ties)
    zeros = np.mean([(((a == 0) & (b == 0)).sum() + absent) / users for a, b in pairs])
    assert numbers["ratio of ties at zero of P@10"] == pytest.approx(zeros)
    padded = [[np.append(row, np.zeros(absent)) for row in pair] for pair in pairs]
    assert numbers["sum of p-values of P@10"] == pytest.approx(sum(ttest_rel(*pair).pvalue for pair in padded))


def test_figure_1_has_condensed_and_full_lists_beside_what_is_printed(found):
    frame = found.exhibit("figure-01-numbers").frame
    (row,) = frame.filter(system="iMF (full)", targets="Test").rows(named=True)
    assert row["printed"] == 0.659
    assert set(frame["targets"]) == {"Test", "2,000 unrated", "Full"}
    assert definition(found.exhibit("figure-01").draw())["mark"]["type"] == "bar"


def test_without_ratings_of_random_items_figure_2_is_shown_as_not_run(found):
    rows = found.exhibit("figure-02-numbers").table.rows
    assert {row[2] for row in rows} == {"not run"}
    assert "not run" not in {row[1] for row in rows}
    assert "figure-02" not in {exhibit.name for exhibit in found.exhibits}


@pytest.mark.parametrize("overlap", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_full_lists_are_measured_by_ratings_of_random_items_too(world, tmp_path, overlap):
    keys = np.random.default_rng(0).random(len(world))
    known, judged = world.keep(keys < 0.6), world if overlap else world.keep(keys >= 0.6)
    found = replicate("canamares-castells2020", judged, out=tmp_path / "out", known=known, folds=2, figures=False)
    folds = [pl.read_parquet(found.folder / "measured" / f"fold-{fold}.parquet") for fold in (1, 2)]
    by_random_items = [fold.filter(metric="unbiased P@10")["value"] for fold in folds]
    row = found.exhibit("figure-02-numbers").frame.filter(system="Popularity", targets="Unbiased", metric="P@10")
    assert row["value"].item() == pytest.approx(np.mean([values[1] for values in by_random_items]))
    if not overlap:
        split = next(iter(k_fold(known, k=2, seed=0)))
        (run,) = recommend(split, {"p": "popularity"}, 10, min_ratings=1, fill="random")
        users = split.train.user_counts > 0
        own = measure(run, judged.keep(users[judged.users]), "P@10", threshold=4).values[0, 0]
        assert by_random_items[0][1] == pytest.approx(np.nan_to_num(own).sum() / users.sum())
    assert definition(found.exhibit("figure-02").draw())["hconcat"]
    assert found.exhibit("figure-04-recall-numbers").frame.height == 5 * len(SIZES)
    assert "By nDCG(gain=binary)@10 targets in between come nearest to the unbiased order" in found.frame()["claim"]


def test_figure_4_has_ties_and_p_values_in_two_panels(found):
    for stem in ("precision", "recall", "ndcg"):
        assert found.exhibit(f"figure-04-{stem}-numbers").frame.height == 4 * len(SIZES)
        assert len(definition(found.exhibit(f"figure-04-{stem}").draw())["hconcat"]) == 2


def test_the_claims_of_the_paper_are_held_against_the_folds(found):
    claims = found.frame()
    assert claims.height == 15
    assert set(claims["verdict"]) <= {"holds", "holds in part", "does not hold", "cannot tell"}
    assert "By P@10 ties are fewest between condensed and full lists" in claims["claim"].to_list()


def test_there_are_78_systems_in_figure_4():
    systems = grid_of(4.0, 0)
    assert len(systems) == 78
    assert len({str(recommender(spelling)) for spelling in systems.values()}) == 78


def test_sums_of_p_values_are_those_of_the_users_of_all_folds_together():
    values = np.random.default_rng(0).random((4, 2, 3, 50)).astype(np.float32)
    values[1] = values[0]  # equal systems have p = 1
    pooled = PairSums.of(values[..., :20]) + PairSums.of(values[..., 20:])
    for size, metric in np.ndindex(2, 3):
        pairs = combinations(values[:, size, metric].astype(np.float64), 2)
        expected = sum(1.0 if np.array_equal(a, b) else ttest_rel(a, b).pvalue for a, b in pairs)
        assert pooled.sums_of_p()[size, metric] == pytest.approx(expected, rel=1e-6)


def test_the_sums_of_all_systems_stand_in_figure_4(world, tmp_path, monkeypatch):
    few = {name: spelling for name, spelling in grid_of(4.0, 0).items() if "k=10" in name or "(" not in name}
    monkeypatch.setattr(work, "grid_of", lambda threshold, seed: few)
    found = replicate("canamares-castells2020", world, out=tmp_path / "out", folds=2, all_systems=True, figures=False)
    table = found.exhibit("figure-04-precision-numbers").table
    assert list(table.header[-2:]) == ["sum of p-values of P@10, 78 systems", "printed sum, 78 systems"]
    assert 0 < float(table.rows[0][-2]) < len(few) * (len(few) - 1) / 2
    assert len(found.exhibit("figure-04-recall-numbers").table.header) == 6
