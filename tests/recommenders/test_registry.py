"""Systems by name: what is spelled is what is made, and what is wrong is said in one line."""

from __future__ import annotations

import builtins
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from cranfield import InputError, SettingError
from cranfield._errors import MissingExtraError
from cranfield.data import Ratings
from cranfield.recommenders import (
    SYSTEMS,
    Model,
    Recommender,
    displayed_name,
    recommender,
    register,
    registry,
    setting,
)
from cranfield.recommenders.model import PairModel
from cranfield.recommenders.protocol import system_name

PAPER = (
    "random popularity average chi2 kld rsv rw rm1 rm2 lm-wsr-ub lm-wsr-ib nncosngbr-ub nncosngbr-ib knn "
    "slim ht svd puresvd bprmf wrmf lda plsa uir ease itemknn"
)
SLOW = ("svd", "bprmf", "mf-pointwise", "neumf", "gmf", "mlp", "lc-nn", "bpr-triplet")
QUICK = {name: f"{name}(epochs=2)" if name in SLOW else name for name in SYSTEMS}


def test_every_system_of_the_papers_is_there():
    assert set(PAPER.split()) <= set(SYSTEMS)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_signature_spells_the_defaults(name):
    spelled = next(one for one in SYSTEMS.signatures() if one.split("(")[0] == name)
    assert recommender(spelled) == recommender(name)


@pytest.mark.parametrize(
    ("spelling", "message"),
    [
        ("knnn", "there is no system 'knnn'; did you mean 'knn'?"),
        ("knn(neighbors=3)", "knn has no parameter 'neighbors'"),
        ("useraverage(k=3)", "useraverage has no parameter 'k'; it takes none"),
        ("knn(k=0)", "k=0 of knn is out of range; give a number at least 1"),
        ("knn(k=2.5)", "k=2.5 of knn is not a whole number"),
        ("knn(k=true)", "k=True of knn is not a whole number"),
        ("knn(similarity=cosin)", "similarity=cosin of knn is not one of cosine, pearson, jaccard"),
        ("knn(binary=1)", "binary=1 of knn is neither true nor false"),
        ("lm-wsr-ub(smoothing=1)", "smoothing=1 of lm-wsr-ub is out of range; give a number below 1"),
        ("svd(rate=0)", "rate=0 of svd is out of range; give a number above 0"),
        ("svd(rate=nan)", "rate=nan of svd is not a number"),
        ("itemknn(b=2)", "b=2 of itemknn is out of range; give a number at most 1"),
        ("rm1(smoothing=jm, amount=1)", "with smoothing=jm give one below 1"),
        ("rm2(amount=1e-300)", "give a number at least 1e-30"),
        ("lda(alpha=1e300)", "give a number at most 1e+09"),
        ("knn@10", "has a cut-off"),
        ("knn(k=", "cannot be read"),
    ],
)
def test_a_wrong_spelling_is_one_line(spelling, message):
    with pytest.raises(SettingError) as error:
        recommender(spelling)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_settings_may_be_numbers_of_numpy_and_whole_ones_spelled_otherwise():
    knn = SYSTEMS["knn"](k=np.int64(5), q=np.float32(0.5), binary=np.True_)
    assert repr(knn).startswith("UserNeighbours(k=5, similarity='cosine', overlap=0, q=0.5, binary=True, ")
    assert recommender("knn(k=1e3)") == recommender("knn(k=1000)")
    with pytest.raises(SettingError, match="is not a number"):
        SYSTEMS["ease"](l2=10**400)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_gives_a_row_a_user_and_a_column_an_item(world, name):
    model = recommender(QUICK[name]).fit(world)
    assert isinstance(model, Recommender)
    scores = model.score(np.array([3, 0, 1]))
    assert scores.shape == (3, world.n_items)
    assert not np.isinf(scores).any()
    np.testing.assert_allclose(scores[:1], model.score([3]), rtol=1e-6, atol=1e-6)
    assert model.score(np.zeros(0, dtype=np.int32)).shape == (0, world.n_items)


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if issubclass(system, PairModel)])
def test_single_pairs_have_the_scores_of_the_rows(world, name):
    model = recommender(QUICK[name]).fit(world)
    users, items = np.divmod(np.arange(world.n_users * world.n_items), world.n_items)
    rows = model.score(np.arange(world.n_users))
    np.testing.assert_allclose(model.score_pairs(users, items), rows.reshape(-1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SYSTEMS)
def test_one_profile_of_one_rating_is_enough(name):
    scores = recommender(QUICK[name]).fit(Ratings.of(["a"], ["x"], [3], [0])).score([0])
    assert scores.shape == (1, 1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rating", [3.0, 0.0])
@pytest.mark.parametrize("name", SYSTEMS)
def test_equal_ratings_everywhere_have_a_defined_result(name, rating):
    users, items = np.divmod(np.arange(24), 4)
    train = Ratings.of(users, items, np.full(24, rating), np.arange(24))
    scores = recommender(QUICK[name]).fit(train).score(np.arange(6))
    assert scores.shape == (6, 4)
    assert not np.isinf(scores).any()


@pytest.mark.parametrize("spelling", ["svd(rate=1e30)", "bprmf(rate=1e30)", "ease(l2=1e-300)", "wrmf(alpha=1e30)"])
def test_a_setting_with_which_nothing_can_be_learned_is_one_line(spelling):
    users, items = np.divmod(np.arange(23), 4)
    with pytest.raises(SettingError, match="give a"):
        recommender(spelling).fit(Ratings.of(users, items, 1.0 + np.arange(23) % 5))


@pytest.mark.filterwarnings("error")
def test_a_rating_of_zero_weighs_nothing_in_bm25_without_saturation():
    train = Ratings.of(["a", "a", "b", "b", "c"], ["x", "y", "x", "z", "y"], [0, 2, 3, 0, 1])
    scores = recommender("itemknn(k1=0)").fit(train).score([0, 1, 2])
    assert np.isfinite(scores).any()


def test_puresvd_bears_ratings_that_sum_up_to_nothing():
    opposed = Ratings.of([0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 0, 1, 2, 3, 2, 3], [1, -1, -1, 1, 1, -1, -1, 1])
    scores = recommender("puresvd(factors=2)").fit(opposed).score([0, 2])
    np.testing.assert_allclose(scores, [[1, -1, 0, 0], [0, 0, 1, -1]], atol=1e-9)


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_empty_training_set_is_refused(world, name):
    with pytest.raises(InputError, match="no training ratings"):
        recommender(name).fit(world.keep(np.zeros(len(world), dtype=bool)))


def test_an_unknown_user_and_an_unfitted_system_are_refused(world):
    model = recommender("popularity")
    with pytest.raises(SettingError, match="call fit"):
        model.score([1])
    model.fit(world)
    for code in (-1, world.n_users):
        with pytest.raises(SettingError, match=f"asked for {code}"):
            model.score([code])


@pytest.mark.parametrize("name", [name for name, system in SYSTEMS.items() if system.needs_positive])
def test_ratings_below_zero_are_refused_where_they_are_weights(name):
    with pytest.raises(InputError, match="holds -2"):
        recommender(name).fit(Ratings.of(["a", "b"], ["x", "y"], [-2, 3]))


def test_a_seed_is_taken_from_the_spelling_first():
    assert recommender("svd(seed=3)", seed=5).seed == 3
    assert recommender("svd", seed=5).seed == 5
    assert not hasattr(recommender("knn", seed=5), "seed")


@pytest.mark.parametrize("name", ["slim", "svd", "bprmf", "mf-pointwise", "wrmf", "lda", "plsa"])
def test_a_missing_library_is_named_with_its_extra(world, name, monkeypatch):
    real = builtins.__import__

    def without_numba(module, *arguments, **options):
        if module.split(".")[0] == "numba":
            raise ImportError(module)
        return real(module, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_numba)
    with pytest.raises(MissingExtraError, match=rf"{name} needs numba.*cranfield\[recommend\]"):
        recommender(name).fit(world)


@pytest.mark.parametrize("spelling", ["ease", "slim(neighbours=none)"])
def test_what_does_not_fit_says_so_at_once(world, spelling, monkeypatch):
    from cranfield import CranfieldError

    monkeypatch.setattr(sys.modules["cranfield.recommenders.work"], "available_memory", lambda: 1000.0)
    with pytest.raises(CranfieldError, match=r"needs .* GiB of memory for a dense matrix of 16 × 16 items"):
        recommender(spelling).fit(world)


def _mine(name, **options):
    @register(name, **options)
    @dataclass
    class Mine(Model):
        size: int = setting(3, low=1)

        def _fit(self, train):
            self._items = train.item_counts * self.size

        def _score(self, users):
            return np.tile(self._items, (len(users), 1))

    return Mine


def test_a_system_of_ones_own_can_be_spelled_once_it_is_registered(world):
    mine = _mine("mine")
    assert mine.name == "mine"
    model = recommender("mine(size=2)").fit(world)
    counts = world.item_counts
    np.testing.assert_array_equal(model.score([1]), [np.where(counts > 0, 2 * counts, np.nan)])
    restored = recommender("mine(size=2)").restore(model.state(), world)
    np.testing.assert_array_equal(restored.score([1]), model.score([1]))
    with pytest.raises(SettingError, match="size=0 of mine is out of range"):
        recommender("mine(size=0)")


def test_a_name_is_not_taken_twice_unless_that_is_said():
    with pytest.raises(SettingError, match="there is already a system 'knn'; choose another name, or give replace"):
        _mine("knn")
    assert recommender("knn") == SYSTEMS["knn"]()
    assert _mine("knn", replace=True)(size=4) == recommender("knn(size=4)")


@pytest.mark.parametrize("name", ["k(n=1)", "k@5", " knn"])
def test_a_name_that_cannot_be_spelled_is_refused(name):
    with pytest.raises(SettingError, match="cannot be the name of a system"):
        _mine(name)


def test_only_models_are_registered():
    with pytest.raises(SettingError, match="is not a class derived from"):
        register("mine")(lambda train, users: None)


def test_each_file_of_the_package_registers_its_systems():
    folder = Path(registry.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in folder.glob("[a-z]*.py")]
    written = [name for text in texts for name in re.findall(r'^@register\("(.*?)".*\)', text, re.MULTILINE)]
    ours = [name for name, system in SYSTEMS.items() if system.__module__.startswith("cranfield.")]
    assert sorted(written) == sorted(ours)


def test_every_system_has_its_line_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "recommenders.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.split("\n") if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall("`(.+?)`", row)}
    ours = {name for name, system in SYSTEMS.items() if system.__module__.startswith("cranfield.")}
    assert ours <= listed


def test_results_call_the_average_rating_item_mean_and_all_others_as_they_are_spelled():
    assert displayed_name("average") == "item mean"
    assert displayed_name("average( damping = 5 )") == "item mean(damping=5)"
    assert all(displayed_name(name) == name for name in SYSTEMS if name != "average")
    assert system_name(recommender("average")) == "item mean"
