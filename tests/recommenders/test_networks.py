"""The neural systems: their formulas, gradients, seeds, contexts, and what they do with odd data."""

from __future__ import annotations

import builtins
import sys

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield._errors import MissingExtraError
from cranfield.data import Ratings, with_features
from cranfield.recommenders import SYSTEMS, read_model, recommender, save_model, triplet
from cranfield.recommenders.networks import NetworkModel, OutsideProfile

NEURAL = [name for name, system in SYSTEMS.items() if issubclass(system, NetworkModel)]
SMALL = "factors=8, epochs={}, batch=32, rate=0.01"


@pytest.fixture(scope="module")
def ratings():
    """Users of two groups, each of which rates the items of its own group."""
    draw = np.random.default_rng(4)
    own = np.add.outer(np.arange(40), np.arange(30)) % 2 == 0
    users, items = np.nonzero(own & (draw.random((40, 30)) < 0.6))
    return Ratings.of(users, items, 1.0 + (users + items) % 5)


@pytest.fixture(scope="module")
def described(ratings):
    groups = {"id": list(range(45)), "group": ["even", "odd"] * 22 + ["new"], "age": [20.0, 30.0, None] * 15}
    return with_features(ratings, groups, {"id": list(range(30)), "kind": ["a", "b"] * 15})


def test_five_systems_are_neural():
    assert sorted(NEURAL) == ["bpr-triplet", "gmf", "lc-nn", "mlp", "neumf"]


@pytest.mark.parametrize("name", NEURAL)
def test_a_missing_library_is_one_line_that_says_how_to_get_it(ratings, name, monkeypatch):
    real = builtins.__import__

    def without(module, *rest):
        if module in ("jax", "optax"):
            raise ImportError(module)
        return real(module, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for module in [module for module in sys.modules if module.split(".")[0] in ("jax", "optax")]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingExtraError) as missing:
        recommender(name).fit(ratings)
    assert str(missing.value) == (
        f"{name} needs jax and optax, which are not installed; get them with: pip install 'cranfield[neural]'"
    )


def test_every_item_outside_a_profile_is_drawn_equally_often_and_no_other():
    train = Ratings.of(["a"] * 3 + ["b"] * 6, ["x1", "x3", "x4", *(f"x{k}" for k in range(6))])
    draws = OutsideProfile(train)
    items, some = draws.drawn(np.repeat([0, 1], 3000), np.random.default_rng(0))
    assert some.tolist() == [True] * 3000 + [False] * 3000
    counts = np.bincount(items[:3000], minlength=6)
    assert counts[[1, 3, 4]].tolist() == [0, 0, 0]
    assert (np.abs(counts[[0, 2, 5]] - 1000) < 120).all()


@pytest.mark.neural
@pytest.mark.parametrize("name", NEURAL)
@pytest.mark.parametrize("target", ["ranking", "rating"])
def test_the_same_seed_gives_the_same_scores_whatever_the_threads(ratings, name, target, monkeypatch):
    spelling = f"{name}({SMALL.format(3)}, target={target})"
    first = recommender(spelling, seed=3).fit(ratings)
    monkeypatch.setattr(cf.settings, "threads", 1)
    again, other = (recommender(spelling, seed=seed).fit(ratings) for seed in (3, 4))
    everyone = np.arange(40)
    np.testing.assert_array_equal(first.score(everyone), again.score(everyone))
    assert not np.array_equal(first.score(everyone), other.score(everyone))
    assert first.training["by"].endswith("on cpu, on 1 thread")
    assert first.predicts_ratings == (target == "rating")


@pytest.mark.neural
@pytest.mark.parametrize("name", ["neumf", "gmf", "mlp", "lc-nn"])
def test_a_ranking_puts_the_users_own_group_first(ratings, name):
    model = recommender(f"{name}({SMALL.format(80)}, target=ranking)").fit(ratings)
    scores = model.score(np.arange(40))
    own = np.add.outer(np.arange(40), np.arange(30)) % 2 == 0
    unseen = own & (ratings.matrix().toarray() == 0)
    assert np.median(scores[unseen]) > np.quantile(scores[~own], 0.8)
    assert model.history[-1]["loss"] < model.history[0]["loss"]


@pytest.mark.neural
def test_triplets_bring_users_near_their_items(ratings):
    spelling = f"bpr-triplet({SMALL.format(40)}, others=unrated, target=ranking, positive=1)"
    scores = recommender(spelling).fit(ratings).score(np.arange(40))
    own = np.add.outer(np.arange(40), np.arange(30)) % 2 == 0
    assert np.mean(scores[own]) > np.mean(scores[~own]) + 0.3
    assert np.abs(scores).max() <= 1 + 1e-5


@pytest.mark.neural
@pytest.mark.parametrize("name", ["neumf", "lc-nn", "bpr-triplet"])
def test_predicted_ratings_are_nearer_than_the_mean(name):
    users, items = np.divmod(np.arange(40 * 20), 20)
    values = np.clip(np.round(3 + users % 3 - 1.0 + items % 3 - 1.0), 1, 5)
    train = Ratings.of(users, items, values).keep(np.random.default_rng(1).random(800) < 0.7)
    model = recommender(f"{name}(epochs=60, batch=64, rate=0.01, target=rating)").fit(train)
    error = model.score(train.users)[np.arange(len(train)), train.items] - train.values
    assert np.sqrt(np.mean(error**2)) < 0.6 * train.values.std()


def _plain_neumf(w, user, item, depth):
    """He et al. (2017), written out for one pair."""
    product = w["user.product embedding"][user] * w["item.product embedding"][item]
    hidden = np.concatenate([w["user.tower embedding"][user], w["item.tower embedding"][item]])
    layers = [np.concatenate([w["user.first"], w["item.first"]])] + [w[f"layer {level}"] for level in range(1, depth)]
    for level, layer in enumerate(layers):
        hidden = np.maximum(0, hidden @ layer + w[f"offset {level}"])
    return float(w["output"] @ np.concatenate([product, hidden]) + w["bias"][0])


@pytest.mark.neural
def test_scores_of_neumf_are_the_formula(ratings):
    model = recommender(f"neumf({SMALL.format(3)}, depth=2)").fit(ratings)
    scores = model.score(np.arange(40))
    for user, item in ((0, 0), (3, 7), (39, 29)):
        assert scores[user, item] == pytest.approx(_plain_neumf(model._weights, user, item, 2), abs=1e-5)
    assert model._weights["user.first"].shape == (16, 16)


def _cross_entropy(x, labels):
    return np.mean(np.logaddexp(0, x) - labels * x)


def _plain_gmf(w, users, items, labels):
    product = w["user.product embedding"][users] * w["item.product embedding"][items]
    return _cross_entropy(product @ w["output"] + w["bias"], labels)


def _plain_latent_cross(w, users, items, labels):
    """With the context of `described`: the group and the age of a user, and the kind of an item."""
    p, q = w["user.embedding"][users], w["item.embedding"][items]
    first = np.concatenate([w["user.first"], w["item.first"], w["product.first"]])
    hidden = np.maximum(0, np.concatenate([p, q, p * q], axis=1) @ first + w["offset 0"])
    ages = np.array([20.0, 30.0, np.nan] * 15)[:40]
    ages = np.nan_to_num((ages - np.nanmean(ages)) / np.nanstd(ages))
    cross = w["user.categories"][users % 2] + ages[users, None] * w["user.numbers"] + w["item.categories"][items % 2]
    hidden = np.maximum(0, (hidden * (1 + cross)) @ w["layer"] + w["offset 1"])
    return _cross_entropy(hidden @ w["output"] + w["bias"], labels)


def _plain_triplets(w, users, high, low):
    def placed(vectors):
        for level in range(2):
            vectors = np.maximum(0, vectors @ w[f"layer {level}"] + w[f"offset {level}"])
        output = vectors @ w["layer 2"] + w["offset 2"]
        return output / np.linalg.norm(output, axis=1, keepdims=True)

    z, near, far = placed(w["users"][users]), placed(w["items"][high]), placed(w["items"][low])
    return np.mean(np.maximum(0, 0.5 + np.sum((z - near) ** 2, axis=1) - np.sum((z - far) ** 2, axis=1)))


@pytest.mark.neural
@pytest.mark.parametrize("target", ["ranking", "rating"])
def test_pretraining_trains_each_half_as_if_it_were_alone(described, target, monkeypatch):
    settings = f"{SMALL.format(3)}, target={target}"
    whole = recommender(f"neumf({settings}, pretraining=3, depth=2, context=users)", seed=2).fit(described)
    known = described.compact()
    halves = {"gmf": f"gmf({settings})", "mlp": f"mlp({settings}, depth=2, context=users)"}
    scores = []
    for place, (name, spelling) in enumerate(halves.items()):
        half = recommender(spelling, seed=2)
        start = whole._start(known)[0]
        own = {"bias": start["w.bias"][place : place + 1], "output": np.split(start["w.output"], 2)[place]}
        monkeypatch.setattr(
            type(half),
            "_initial",
            lambda self, draw, sizes, names=half._initial, start=start, own=own: {
                name: own.get(name, start.get(f"w.{name}")) for name in names(draw, sizes)
            },
        )
        monkeypatch.setattr(type(half), "name", "neumf")  # the examples are drawn by the name
        scores.append(half.fit(described).score(np.arange(40)))
        monkeypatch.setattr(type(half), "name", name)
    np.testing.assert_allclose(whole.score(np.arange(40)), (scores[0] + scores[1]) / 2, rtol=1e-4, atol=1e-5)


@pytest.mark.neural
@pytest.mark.parametrize(("profile", "epochs"), [(1, 2), (4, 2), (8, 4), (40, 20), (60, 20)])
def test_a_network_passes_less_often_over_short_profiles_and_says_how_often(profile, epochs):
    users, items = (np.repeat(np.arange(12), profile), np.arange(12 * profile) % (profile + 7))
    train = cf.Ratings.of(users, items)
    model = recommender("gmf(factors=2, batch=32)").fit(train)
    assert len(model.history) == epochs
    assert model.adapted == {"epochs": epochs}
    assert recommender("gmf(factors=2, epochs=3)").fit(train).adapted == {}


@pytest.mark.neural
def test_a_network_that_can_stop_early_may_take_20_epochs_over_any_profiles():
    train, validation = (cf.Ratings.of(np.arange(30), (np.arange(30) * step) % 10) for step in (1, 3))
    model = recommender("gmf(factors=2, patience=0)").fit(train, validation)
    assert len(model.history) == model.adapted["epochs"] == 20


@pytest.mark.neural
def test_a_pretrained_network_goes_on_with_both_halves_together(ratings, tmp_path):
    spelling = "neumf(factors=8, epochs={}, batch=32, rate=0.01, pretraining=2)"
    apart, both = (recommender(spelling.format(epochs)).fit(ratings) for epochs in (2, 6))
    assert both.history[:2] == apart.history
    assert both.history[2]["loss"] < apart.history[1]["loss"] / 2  # one loss instead of two
    recommender(spelling.format(3)).fit(ratings, checkpoint=tmp_path / "stopped.npz")
    later = recommender(spelling.format(6)).fit(ratings, checkpoint=tmp_path / "stopped.npz")
    np.testing.assert_array_equal(later.score(np.arange(40)), both.score(np.arange(40)))


@pytest.mark.neural
@pytest.mark.parametrize(
    ("spelling", "plain"),
    [
        ("gmf(factors=3, {}, negatives=1)", _plain_gmf),
        ("lc-nn(factors=3, hidden=5, {}, negatives=2, context=both)", _plain_latent_cross),
        ("bpr-triplet(factors=4, embedding=6, hidden=7, {}, dropout=0, target=ranking)", _plain_triplets),
    ],
)
def test_a_step_is_adam_on_the_gradient_of_the_loss_by_its_formula(described, spelling, plain, monkeypatch):
    """One batch holds all examples, so that their order does not matter. The gradient is that of a plain loss, by
    differences; a tenth of it is Adam's mean after the first step, which has the size of the rate."""
    monkeypatch.setattr(triplet, "_EMBEDDINGS_DROPPED", 0.0)
    model, columns = recommender(spelling.format("epochs=1, batch=100000, rate=0.01")), []
    drawing = "_drawn" if hasattr(model, "_drawn") else "_examples"
    drawn = getattr(model, drawing)

    def watched(*arguments):
        for part in drawn(*arguments):
            columns.append(part)
            yield part

    monkeypatch.setattr(model, drawing, watched)
    draw, (numbers, epoch) = np.random.default_rng(0), model._start(described)
    for name in (name for name in numbers if "offset" in name):  # a rectifier is not differentiable at 0
        numbers[name] = draw.normal(size=numbers[name].shape).astype(np.float32)
    after, value = epoch(numbers, 0)
    w = {name.removeprefix("w."): np.asarray(own, float) for name, own in numbers.items() if name.startswith("w.")}
    examples = columns[-1]
    assert value == pytest.approx(plain(w, *examples), rel=1e-5)
    means = [own for name, own in after.items() if name.startswith("adam.")][1:]
    for name, mean in zip(sorted(w), means, strict=False):
        for place in draw.integers(w[name].size, size=6):
            high, low = ({**w, name: w[name].copy()} for _ in range(2))
            high[name].flat[place] += 1e-7
            low[name].flat[place] -= 1e-7
            slope = (plain(high, *examples) - plain(low, *examples)) / 2e-7
            assert 10 * mean.flat[place] == pytest.approx(slope, rel=1e-3, abs=1e-6)
            moved = float(after[f"w.{name}"].flat[place] - numbers[f"w.{name}"].flat[place])
            if abs(slope) > 1e-5:
                assert moved == pytest.approx(-0.01 * np.sign(slope), rel=2e-2)


@pytest.mark.neural
@pytest.mark.parametrize("name", ["neumf", "mlp", "lc-nn"])
def test_what_is_known_of_users_helps_those_without_ratings(described, name):
    train = described.keep(described.users < 36)
    model = recommender(f"{name}({SMALL.format(80)}, context=both)").fit(train)
    for newcomer in range(36, 40):
        scores = model.score([newcomer])[0]
        own = (np.arange(30) + newcomer) % 2 == 0
        assert np.nanmean(scores[own]) > np.nanmean(scores[~own])
    without = recommender(f"{name}({SMALL.format(1)})").fit(train)
    assert np.isnan(without.score([37])).all()


@pytest.mark.neural
@pytest.mark.parametrize("name", ["neumf", "lc-nn"])
def test_missing_values_and_unseen_categories_add_nothing(ratings, name):
    ids = list(range(40))
    nothing = pl.DataFrame({"id": ids, "age": pl.Series([None] * 40, dtype=pl.Float64), "town": [None] * 40})
    empty = with_features(ratings, nothing.with_columns(pl.col("town").cast(pl.String)))
    spelling = f"{name}({SMALL.format(3)}, context=users)"
    scores = recommender(spelling).fit(empty).score(np.arange(40))
    assert np.isfinite(scores).all()
    some = with_features(ratings, {"id": ids, "town": ["x"] * 39 + ["only here"]})
    train = some.keep(some.users < 39)
    model = recommender(spelling).fit(train)
    unseen, missing = model.score([39])[0], None
    gone = with_features(ratings, {"id": ids, "town": ["x"] * 39 + [None]}).keep(ratings.users < 39)
    missing = recommender(spelling).fit(gone).score([39])[0]
    np.testing.assert_allclose(unseen, missing, rtol=1e-6)


@pytest.mark.neural
def test_a_context_that_is_not_there_is_named(ratings, described):
    with pytest.raises(InputError, match=r"neumf uses features of users.*user_features"):
        recommender("neumf(context=users)").fit(ratings)
    with pytest.raises(SettingError, match="gmf has no parameter 'context'"):
        recommender("gmf(context=users)")
    assert recommender("neumf").uses_features is False


@pytest.mark.neural
@pytest.mark.parametrize("spelling", [f"lc-nn({SMALL.format(2)}, context=both)", f"bpr-triplet({SMALL.format(2)})"])
def test_a_kept_model_needs_no_jax_and_knows_its_context(described, spelling, tmp_path, monkeypatch):
    model = recommender(spelling).fit(described)
    path = save_model(model, tmp_path / "m.npz")
    monkeypatch.setattr("cranfield.recommenders.networks.libraries", None)
    kept = read_model(path, spelling, described)
    np.testing.assert_array_equal(kept.score(np.arange(40)), model.score(np.arange(40)))
    if "context" in spelling:
        other = with_features(described, {"id": list(range(40)), "age": [1.0] * 40})
        with pytest.raises(InputError, match="trained on other ratings"):
            read_model(path, spelling, other)


@pytest.mark.neural
@pytest.mark.parametrize("name", NEURAL)
def test_a_training_that_was_stopped_ends_with_the_same_numbers(described, name, tmp_path):
    path = tmp_path / "c.npz"
    recommender(f"{name}({SMALL.format(2)})").fit(described, checkpoint=path)
    resumed = recommender(f"{name}({SMALL.format(4)})").fit(described, checkpoint=path)
    straight = recommender(f"{name}({SMALL.format(4)})").fit(described)
    np.testing.assert_array_equal(resumed.score(np.arange(40)), straight.score(np.arange(40)))


@pytest.mark.neural
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", NEURAL)
def test_a_loss_beyond_all_numbers_is_one_line(ratings, name):
    with pytest.raises(SettingError, match=rf"{name} does not converge with rate=1e\+30"):
        recommender(f"{name}(factors=4, epochs=9, batch=8, rate=1e30)").fit(ratings)


@pytest.mark.neural
@pytest.mark.parametrize("name", NEURAL)
@pytest.mark.parametrize("target", ["ranking", "rating"])
def test_a_single_user_or_one_class_of_ratings_has_a_defined_result(name, target):
    single = Ratings.of(["a"] * 5, list("vwxyz"), [1, 2, 3, 4, 5])
    same = Ratings.of([1, 1, 2, 2, 3], [1, 2, 2, 3, 1])
    for train in (single, same):
        scores = recommender(f"{name}({SMALL.format(3)}, target={target})").fit(train).score(np.arange(train.n_users))
        assert np.isfinite(scores).all()
    if target == "rating":
        np.testing.assert_allclose(scores, 1.0, atol=0.5)


@pytest.mark.neural
@pytest.mark.parametrize("name", ["neumf", "lc-nn"])
def test_a_threshold_that_no_rating_reaches_is_named(ratings, name):
    with pytest.raises(InputError, match=rf"no training rating reaches threshold=9 of {name}; the highest is 5"):
        recommender(f"{name}(threshold=9)").fit(ratings)


@pytest.mark.neural
def test_numbers_of_any_size_are_scaled(ratings):
    huge = with_features(ratings, {"id": list(range(40)), "age": [1e300, -1e300] * 20})
    plain = with_features(ratings, {"id": list(range(40)), "age": [1.0, -1.0] * 20})
    models = [recommender(f"neumf({SMALL.format(1)}, context=users)").fit(data) for data in (huge, plain)]
    first, second = (model.score(np.arange(40)) for model in models)
    np.testing.assert_allclose(first, second, rtol=1e-5)


@pytest.mark.neural
def test_memory_is_that_of_a_part_of_the_examples(ratings, monkeypatch):
    import cranfield.recommenders.networks as networks

    whole = list(recommender("neumf(batch=64)")._drawn(ratings, 0))
    assert len(whole) == 1
    monkeypatch.setattr(networks, "EXAMPLES", 100)
    parts = list(recommender("neumf(batch=64)")._drawn(ratings, 0))
    assert max(len(part[0]) for part in parts) == 100
    assert sum(len(part[0]) for part in parts) == len(whole[0][0]) == 5 * len(ratings)
    for users, items, labels in parts:
        rated = np.asarray(ratings.matrix()[users, items]).reshape(-1) > 0
        np.testing.assert_array_equal(rated, labels == 1)
