"""The reference values of next-basket recommendation on Ta-Feng, and of tuning in time on MovieLens 100K.

Ta-Feng as Li et al. (2023) published it: the last basket of each user is the test part. The values were computed by a
plain program from the definitions, with binary gain and the ideal list cut at 10. ``benchmarks/baskets.py`` has more
rows, where ties go by other rules than in our lists.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.experiments import search
from cranfield.rankings import measured_ratings
from cranfield.splits import Split, for_validation, leave_out, temporal

METRICS = ["Recall@10", "nDCG(gain=binary)@10", "HitRate@10", "RepeatShare@10"]
# Repeats, system, whether ties go by ascending ids, Recall, nDCG, hit rate, and share of repeats.
ROWS = [
    ("allow", "topfreq(scope=global)", False, (0.080346, 0.087497, 0.248882, 0.108558)),
    ("allow", "topfreq(ties=id_ascending)", False, (0.118233, 0.112233, 0.389089, 1)),
    ("allow", "topfreq(ties=popularity)", False, (0.121720, 0.118184, 0.399769, 1)),
    ("allow", "tifu-knn", False, (0.130004, 0.112068, 0.401645, 0.926151)),
    ("exclude", "topfreq(scope=global)", False, (0.058480, 0.061537, 0.177514)),
    ("only", "topfreq(scope=global, ties=id_ascending)", False, (0.551335, 0.352030, 0.705193)),
    ("hide", "topfreq(scope=global)", False, (0.049107, 0.054423, 0.168278)),
    ("allow", "topfreq(ties=id)", False, (0.108631,)),
    ("allow", "topfreq(ties=recent)", True, (0.114261,)),
    ("allow", "topfreq(scope=both, ties=popularity)", False, (0.135073,)),
]
OF_EACH = {  # Recall of repeated and of new items
    "topfreq(scope=global)": (0.126795, 0.057326),
    "topfreq(ties=id_ascending)": (0.599842, 0.0),
    "topfreq(ties=popularity)": (0.622766, 0.0),
    "tifu-knn": (0.582819, 0.018104),
}


def _baskets(path, ascending=False):
    frame = pl.read_parquet(path)
    if ascending:  # ties go by ids as text, descending
        frame = frame.with_columns((99_999 - pl.col("item")).cast(pl.String).str.zfill(5).alias("item"))
    ratings = cf.read(frame, basket="basket")
    return leave_out(ratings, l=1, which="last", unit="basket", short="train")


@pytest.fixture(scope="module")
def baskets(real_data):
    path = real_data("tafeng-baskets.parquet")
    return {ascending: _baskets(path, ascending) for ascending in (False, True)}


def test_the_last_baskets_of_ta_feng_are_those_of_the_reference(baskets):
    split = baskets[False]
    assert split.step.effect["events"] == {"train": 480_611, "test": 91_322}
    had, users = split.repeated, split.test.users
    assert round(float(had.mean()), 5) == 0.16627
    shares = np.bincount(users, had) / np.bincount(users)
    assert (len(shares), round(float(shares.mean()), 6)) == (13_858, 0.187639)
    assert (len(np.unique(users[had])), len(np.unique(users[~had]))) == (7_164, 13_137)


def test_only_repeats_and_hidden_ones_have_the_bounds_of_the_reference(baskets):
    split = baskets[False]
    lists = {"mine": {user: [0] for user in split.test.user_ids.all.to_list()[:3]}}
    bounds = {}
    for repeats in ("only", "hide"):
        scores = cf.measure(lists, split.test, "Recall@10", train=split.train, repeats=repeats)
        fact = scores.warnings[0] if repeats == "hide" else scores.notes[-1]
        bounds[repeats] = dict(fact.most if repeats == "hide" else fact.random)["Recall@10"]
    assert bounds == pytest.approx({"only": 0.425665, "hide": 0.770344}, abs=5e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("repeats", "system", "ascending", "values"), ROWS, ids=lambda value: str(value)[:40])
def test_a_system_has_the_values_of_the_reference(baskets, repeats, system, ascending, values):
    split = baskets[ascending]
    runs = cf.recommend(split, system, repeats=repeats, length=10)
    test = measured_ratings(split, repeats=repeats)
    scores = cf.measure(runs, test, METRICS, train=split.train, threshold=1)
    assert scores.average()[0, : len(values)] == pytest.approx(values, abs=1e-6)
    if repeats == "allow" and system in OF_EACH:
        said = scores.notes[-1]
        assert (said.repeated, said.new) == pytest.approx(OF_EACH[system], abs=1e-6)


# MovieLens 100K, temporal(train=0.8), nDCG(gain=binary)@10, threshold 4: the chosen setting; without a refit, with
# validation items in the lists and without them; and after a refit.
NEWEST_FIFTH = {
    "knn": ("knn(k=20)", "k", [5, 10, 20, 50, 100, 200], (0.037445, 0.039292, 0.045230)),
    "ease": ("ease(l2=100)", "l2", [10, 30, 100, 300, 1000, 3000], (0.037153, 0.041054, 0.046165)),
}


@pytest.mark.slow
@pytest.mark.parametrize("system", NEWEST_FIFTH)
def test_tuning_on_the_newest_fifth_has_the_values_of_the_reference(real_data, system):
    best, parameter, grid, values = NEWEST_FIFTH[system]
    split = temporal(cf.read(real_data("ml-100k.parquet")), train=0.8)
    tuned = search(split, system, {parameter: grid}, "nDCG(gain=binary)@10", threshold=4)
    assert (tuned.best.system, tuned.served) == (best, 97)
    (inner,) = for_validation(split)
    apart = Split(inner.train, split.test, split.step, validation=inner.test)
    runs = [
        cf.recommend(Split(inner.train, split.test, split.step), best),
        cf.recommend(apart, best, refit=False),
        cf.recommend(apart, best),
    ]
    means = [cf.measure(run, split.test, "nDCG(gain=binary)@10", threshold=4).average()[0, 0] for run in runs]
    assert means == pytest.approx(values, abs=1e-6)
