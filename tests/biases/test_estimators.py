"""Estimators in worlds where the truth is known, and against loops written from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import cranfield as cf
from cranfield.biases import estimate, estimators
from cranfield.biases.propensities import Propensities
from cranfield.facts import bias as bias_facts

N = 4


@pytest.fixture(scope="module")
def world():
    """Everybody's relevance of every item, and the probability that it is observed: popular items are seen more."""
    rng = np.random.default_rng(8)
    users, items = 60, 15
    popularity = np.linspace(0.9, 0.15, items)
    liked = rng.random((users, items)) < 0.25 + 0.5 * rng.random(items)[None, :]
    chance = np.tile(popularity, (users, 1))
    lists = {u: [f"i{i:02}" for i in np.argsort(-(0.7 * popularity + rng.random(items)))[:N]] for u in range(users)}
    return liked, chance, lists


def _observed(world, seed):
    liked, chance, _ = world
    users, items = np.nonzero(np.random.default_rng(seed).random(liked.shape) < chance)
    names = [f"i{i:02}" for i in items]
    test = cf.Ratings.of(users.tolist(), names, np.where(liked[users, items], 5.0, 1.0).tolist())
    given = cf.Ratings.of(users.tolist(), names, chance[users, items].tolist())
    return test, given


@pytest.fixture(scope="module")
def train():
    items = [f"i{(u + shift) % 15:02}" for shift in (0, 7) for u in range(30)]
    return cf.Ratings.of([100 + u for u in range(30)] * 2, items, [5.0, 1.0, 5.0] * 20)


def _truth(world):
    liked, _, lists = world
    return np.mean([[liked[u, int(item[1:])] for item in lists[u]] for u in lists])


@pytest.fixture(scope="module")
def repeated(world, train):
    """The estimates over many draws of what is observed."""
    frames = []
    for seed in range(30):
        test, given = _observed(world, seed)
        result = estimate(
            {"mine": world[2]},
            test,
            train=train,
            n=N,
            propensities=given,
            threshold=4,
            resamples=20,
            imputations="item mean",
        )
        frames.append(dict(zip(zip(result.frame()["metric"], result.frame()["estimator"]), result.frame()["estimate"])))
    return {key: np.array([frame[key] for frame in frames]) for key in frames[0]}


@pytest.mark.parametrize("estimator", ["IPS", "SNIPS", "DR (item mean)"])
def test_with_the_right_propensities_estimates_are_right_on_average(estimator, repeated, world):
    values = repeated[f"P@{N}", estimator]
    slack = 0.01 if estimator == "SNIPS" else 0.0  # a ratio has a bias that shrinks with the number of users
    assert abs(values.mean() - _truth(world)) < 4 * values.std(ddof=1) / np.sqrt(len(values)) + slack
    assert abs(repeated[f"P@{N}", "observed"].mean() - _truth(world)) > 0.05


def test_recall_as_a_ratio_of_sums_is_right_on_average(repeated, world):
    liked, _, lists = world
    held = sum(liked[u, int(item[1:])] for u in lists for item in lists[u])
    values = repeated[f"Recall@{N}", "IPS"]
    assert abs(values.mean() - held / liked.sum()) < 4 * values.std(ddof=1) / np.sqrt(len(values)) + 0.01


def test_a_doubly_robust_estimate_is_right_with_wrong_propensities_and_the_right_imputation(world, train, monkeypatch):
    liked, _, lists = world
    share = liked.mean(axis=0)
    codes = {f"i{i:02}": i for i in range(liked.shape[1])}

    def right(train, liked, seed):
        order = np.array([codes[item] for item in train.item_ids.all.to_list()])
        return lambda users, items: share[order[items]]

    monkeypatch.setattr(estimators, "_item_mean", right)
    dr, ips = [], []
    for seed in range(30):
        test, given = _observed(world, seed)
        wrong = cf.Ratings.of(given.users.tolist(), given.frame()["item"].to_list(), [0.6] * len(given))
        frame = estimate(
            {"mine": lists},
            test,
            train=train,
            n=N,
            propensities=wrong,
            threshold=4,
            resamples=5,
            imputations="item mean",
        ).frame()
        values = dict(zip(frame["estimator"][:4], frame["estimate"][:4]))
        dr.append(values["DR (item mean)"])
        ips.append(values["IPS"])
    assert abs(np.mean(dr) - _truth(world)) < 0.03
    assert abs(np.mean(ips) - _truth(world)) > abs(np.mean(dr) - _truth(world))


def test_estimates_equal_their_definitions(world, train):
    test, given = _observed(world, 5)
    clip = 0.4
    frame = estimate(
        {"mine": world[2]}, test, train=train, n=N, propensities=given, clip=clip, threshold=4, resamples=5
    ).frame()
    profile, weight = {}, {}
    for user, item, value, *_ in test.frame().iter_rows():
        profile[user, item] = value >= 4
    for user, item, value, *_ in given.frame().iter_rows():
        weight[user, item] = 1 / max(value, clip)
    top = [(u, item) for u, items in world[2].items() for item in items]
    hits = sum(weight[pair] for pair in top if profile.get(pair))
    seen = sum(weight[pair] for pair in top if pair in profile)
    liked = sum(weight[pair] for pair, good in profile.items() if good)
    users = len({user for user, _ in profile})
    q = {}
    overall = (train.values >= 4).mean()
    for item in sorted({item for _, item in top}):
        own = [value >= 4 for _, other, value, *_ in train.frame().iter_rows() if other == item]
        q[item] = (sum(own) + 5 * overall) / (len(own) + 5)
    robust = sum(q[i] + (weight[u, i] * (profile[u, i] - q[i]) if (u, i) in profile else 0) for u, i in top)
    values = {(m, e): v for m, e, v in frame.select("metric", "estimator", "estimate").iter_rows()}
    assert values[f"P@{N}", "IPS"] == pytest.approx(hits / (N * users))
    assert values[f"P@{N}", "SNIPS"] == pytest.approx(hits / seen)
    assert values[f"P@{N}", "DR (item mean)"] == pytest.approx(robust / (N * users))
    assert values[f"Recall@{N}", "IPS"] == pytest.approx(hits / liked)
    assert 0 < values[f"P@{N}", "DR (svd)"] < 1


def test_what_clipping_loses_is_within_its_bound(split):
    (run,) = cf.recommend(split, "random", length=5)
    plain, clipped = (
        estimate(run, split.test, train=split.train, n=5, clip=clip, threshold=4, resamples=5, imputations=())
        for clip in (0.0, 0.5)
    )
    rows = [result.frame().filter(metric="P@5", estimator="IPS").row(0, named=True) for result in (plain, clipped)]
    assert rows[0]["clip_bias"] == 0
    assert rows[1]["estimate"] < rows[0]["estimate"]
    users, items = run.users, run.items
    own = np.isin(users, np.flatnonzero(split.test.user_counts))
    chance = clipped.propensities.of(np.repeat(users[own], 5), items.reshape(-1, 5)[own].reshape(-1))
    assert rows[1]["clip_bias"] == pytest.approx(np.maximum(1 - chance / 0.5, 0).sum() / (5 * own.sum()))


def test_a_few_heavy_weights_give_a_warning_and_a_small_effective_size(world, train):
    test, given = _observed(world, 1)
    values = np.full(len(given), 0.9)
    first = next(
        k for k, (u, i, *_) in enumerate(given.frame().iter_rows()) if i in world[2][u] and test.values[k] >= 4
    )
    values[first] = 0.0001
    heavy = cf.Ratings.of(given.users.tolist(), given.frame()["item"].to_list(), values.tolist())
    result = estimate({"mine": world[2]}, test, train=train, n=N, propensities=heavy, threshold=4, resamples=5)
    assert result.frame().filter(estimator="IPS")["effective"][0] < 2
    assert isinstance(result.warnings[0], bias_facts.UnevenWeights)
    assert 0.9 < result.warnings[0].carried < 1
    assert "carry 9" in result.table().text()


def test_an_estimate_above_1_gives_a_warning(world, train):
    test, given = _observed(world, 1)
    low = cf.Ratings.of(given.users.tolist(), given.frame()["item"].to_list(), [0.05] * len(given))
    result = estimate(
        {"mine": world[2]}, test, train=train, n=N, propensities=low, threshold=4, resamples=5, imputations=()
    )
    assert any(isinstance(warning, bias_facts.AboveOne) for warning in result.warnings)


def test_intervals_hold_the_truth_about_as_often_as_they_say(world, train):
    inside = 0
    for seed in range(40):
        test, given = _observed(world, 100 + seed)
        frame = estimate(
            {"mine": world[2]}, test, train=train, n=N, propensities=given, threshold=4, resamples=200, imputations=()
        ).frame()
        row = frame.filter(estimator="IPS", metric=f"P@{N}").row(0, named=True)
        inside += row["lower"] <= _truth(world) <= row["upper"]
    assert inside >= 34  # of 40; users' relevance is fixed here, so the bootstrap interval is a little wide


def test_positive_ratings_alone_have_neither_snips_nor_doubly_robust_estimates(split):
    positive = split.test.keep(split.test.values >= 4)
    (run,) = cf.recommend(split, "popularity", length=5)
    result = estimate(run, positive, train=split.train, n=5, threshold=4, resamples=5)
    assert set(result.frame()["estimator"]) == {"observed", "IPS"}
    assert bias_facts.PopularityRemark("relevant ratings alone") in result.notes
    with pytest.raises(cf.SettingError, match="needs observed ratings that are not relevant"):
        estimate(run, positive, train=split.train, n=5, threshold=4, imputations="svd")


def test_without_the_library_of_an_imputation_the_others_are_shown(split, monkeypatch):
    def missing(spelling):
        raise cf.errors.MissingExtraError(spelling, library="numba", extra="recommend")

    monkeypatch.setattr(estimators, "recommender", missing)
    (run,) = cf.recommend(split, "popularity", length=5)
    options = {"train": split.train, "n": 5, "threshold": 4, "resamples": 5}
    result = estimate(run, split.test, **options)
    assert "DR (item mean)" in set(result.frame()["estimator"])
    assert [note.names for note in result.notes] == [("DR (svd)",)]
    with pytest.raises(cf.errors.MissingExtraError):
        estimate(run, split.test, imputations="svd", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"clip": 2}, "clip=2 is not a probability"), ({"train": None}, "come from training ratings")],
)
def test_bad_settings_are_refused(options, message, split):
    (run,) = cf.recommend(split, "popularity", length=5)
    with pytest.raises(cf.SettingError, match=message):
        estimate(run, split.test, **{"train": split.train, "threshold": 4, **options})


def test_a_propensity_of_zero_is_refused(split):
    (run,) = cf.recommend(split, "popularity", length=5)
    nothing = Propensities(
        "popularity", np.full(split.train.n_items, -1e9), np.zeros(split.train.n_users), 0.0, (1, 1), 0.0, np.zeros(0)
    )
    with pytest.raises(cf.SettingError, match="have the propensity 0"):
        estimate(run, split.test, train=split.train, n=5, threshold=4, propensities=nothing, imputations=())
