"""A fitted model that was kept is the model: every system, every score, to the last bit."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import numpy as np
import pytest

from cranfield import CranfieldError, InputError, SettingError
from cranfield.data import Ratings
from cranfield.recommenders import SYSTEMS, Model, can_be_kept, read_model, recommender, save_model

QUICK = {
    "svd": "svd(epochs=2)", "bprmf": "bprmf(epochs=2)", "mf-pointwise": "mf-pointwise(epochs=2)",
    "lda": "lda(iterations=3)", "plsa": "plsa(iterations=3)",
    **{name: f"{name}(epochs=2, batch=64)" for name in ("neumf", "gmf", "mlp", "lc-nn", "bpr-triplet")},
}  # fmt: skip
OTHERS = [
    "knn(binary=true, similarity=pearson)",
    "slim(neighbours=none)",
    "rm1(neighbours=ql)",
    "popularity(threshold=4)",
]


@pytest.mark.parametrize("spelling", [*(QUICK.get(name, name) for name in SYSTEMS), *OTHERS])
def test_what_is_restored_scores_exactly_as_what_was_fitted(world, spelling, tmp_path):
    fitted = recommender(spelling).fit(world)
    users = np.arange(world.n_users)
    expected = fitted.score(users)
    state = fitted.state()
    assert all(isinstance(array, np.ndarray) and not array.dtype.hasobject for array in state.values())
    restored = recommender(spelling).restore(state, world)
    read = read_model(save_model(fitted, tmp_path / "model.npz"), spelling, world)
    for other in (restored, read):
        found = other.score(users)
        assert found.dtype == expected.dtype
        assert found.tobytes() == expected.tobytes()


def test_training_ratings_are_named_and_not_copied(world):
    world = world.compact()
    state = recommender("knn").fit(world).state()
    assert set(state) == {"plan", "_neighbours.data", "_neighbours.indices", "_neighbours.indptr"}
    restored = recommender("knn").restore(state, world)
    assert np.shares_memory(restored._ratings.indices, world.items)


def test_the_same_model_is_the_same_file(world, tmp_path):
    first, second = (save_model(recommender("ease").fit(world), tmp_path / name) for name in ("a.npz", "b.npz"))
    assert first.read_bytes() == second.read_bytes()


def test_a_model_that_is_not_fitted_has_nothing_to_keep(tmp_path):
    with pytest.raises(SettingError, match=r"knn is not fitted yet; call fit\(train\) first"):
        save_model(recommender("knn"), tmp_path / "knn.npz")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def kept(world, tmp_path):
    return save_model(recommender("knn(k=3)").fit(world), tmp_path / "knn.npz")


@pytest.mark.parametrize(
    ("spelling", "said"),
    [
        ("ease", "knn.npz: this model is for system knn, not ease; train the system again"),
        ("knn(k=4, q=2)", "this model was trained with k=3, not 4, q=1.0, not 2; train"),
    ],
)
def test_a_model_of_another_system_is_refused(kept, world, spelling, said):
    with pytest.raises(InputError, match=re.escape(said)):
        read_model(kept, spelling, world)


def test_a_model_of_other_ratings_or_another_version_is_refused(kept, world, monkeypatch):
    fewer = world.keep(np.arange(len(world)) > 0)
    with pytest.raises(InputError, match=r"knn\.npz: this model was trained on other ratings; train the system again"):
        read_model(kept, "knn(k=3)", fewer)
    monkeypatch.setattr("cranfield.recommenders.saving.__version__", "99")
    with pytest.raises(InputError, match=r"is for version .*, not 99"):
        read_model(kept, "knn(k=3)", world)


def test_a_seed_that_is_not_spelled_counts_too(world, tmp_path):
    path = save_model(recommender("random", seed=7).fit(world), tmp_path / "random.npz")
    assert read_model(path, "random", world, seed=7).score([0]).shape == (1, world.n_items)
    with pytest.raises(InputError, match="seed=7, not 0"):
        read_model(path, "random", world)


def test_a_damaged_file_is_one_line(kept, world):
    whole = kept.read_bytes()
    draw = np.random.default_rng(0)
    broken = [b"", b"PK", whole[:-1], whole[: len(whole) // 2], b"\0" * len(whole)]
    for place in draw.integers(0, len(whole), 60):
        broken.append(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
    expected = recommender("knn(k=3)").fit(world).score(np.arange(world.n_users))
    for content in broken:
        kept.write_bytes(content)
        found, said = _read(kept, "knn(k=3)", world)
        # A byte that nothing depends on, such as a date in the archive, may differ.
        assert found is None or np.array_equal(found.score(np.arange(world.n_users)), expected, equal_nan=True)
        assert (found is None) == bool(re.fullmatch(".*knn.npz: .*; train the system again", said))


def _read(path, spelling, train):
    try:
        return read_model(path, spelling, train), ""
    except CranfieldError as error:
        return None, str(error)


def test_arrays_that_are_not_a_model_and_pickles_are_refused(tmp_path, world):
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    np.save(tmp_path / "single.npy", np.arange(3))
    np.savez(tmp_path / "objects.npz", about=np.array([{}], dtype=object))
    for name in ("other.npz", "single.npy", "objects.npz"):
        with pytest.raises(InputError, match="this is not a saved model"):
            read_model(tmp_path / name, "knn", world)
    with pytest.raises(InputError, match="there is no such file"):
        read_model(tmp_path / "missing.npz", "knn", world)


def test_indices_out_of_range_and_foreign_names_are_refused(world):
    fitted = recommender("nncosngbr-ub").fit(world)
    state = fitted.state()
    plan = json.loads(str(state["plan"]))
    far = {**state, "_neighbours.indices": state["_neighbours.indices"] + 10**6}
    plan["_biases"]["object"] = "Ratings"
    foreign = {**state, "plan": np.array(json.dumps({**plan}))}
    for wrong in (far, foreign, {}, {"plan": np.array("[]")}):
        with pytest.raises(InputError, match="this is not the state of a fitted model"):
            recommender("nncosngbr-ub").restore(wrong, world)


class Mine:
    """A system of one's own."""

    def fit(self, train):
        self.counts = train.item_counts
        return self

    def score(self, users):
        return np.tile(self.counts, (len(users), 1))


class Keeping(Mine):
    """A system that keeps itself."""

    def save(self, path):
        path.write_text(json.dumps(self.counts.tolist()))

    def load(self, path):
        self.counts = np.array(json.loads(path.read_text()))


def test_a_system_of_ones_own_is_kept_if_it_offers_save_and_load(tmp_path):
    train = Ratings.of(["a", "b"], ["x", "x"])
    assert can_be_kept(Keeping())
    assert can_be_kept(recommender("knn"))
    assert not can_be_kept(Mine())
    path = save_model(Keeping().fit(train), tmp_path / "mine.json")
    assert read_model(path, Keeping(), train).score([0]).tolist() == [[2]]
    with pytest.raises(SettingError, match=r"Mine cannot be saved; give it save\(path\) and load\(path\)"):
        save_model(Mine().fit(train), tmp_path / "other")
    with pytest.raises(SettingError, match=r"Mine has no load\(path\)"):
        read_model(path, Mine(), train)
    with pytest.raises(InputError, match="there is no such file"):
        read_model(tmp_path / "missing", Keeping(), train)


@dataclass
class Odd(Model):
    """A model that learns what arrays do not hold."""

    name = "odd"

    def _fit(self, train):
        self._counts = list(train.item_counts)

    def _score(self, users):
        return np.tile(self._counts, (len(users), 1))


@dataclass
class OddKeeping(Odd):
    """A model that keeps itself."""

    def save(self, path):
        path.write_text(json.dumps([int(count) for count in self._counts]))

    def load(self, path):
        self._counts = json.loads(path.read_text())


def test_a_model_of_ones_own_that_learns_more_than_arrays_keeps_itself_or_is_refused(tmp_path):
    train = Ratings.of(["a", "b"], ["x", "x"])
    with pytest.raises(SettingError, match=r"^_counts is a list, which cannot be kept as arrays; give the system save"):
        save_model(Odd().fit(train), tmp_path / "odd.npz")
    assert list(tmp_path.iterdir()) == []
    path = save_model(OddKeeping().fit(train), tmp_path / "odd.json")
    assert read_model(path, OddKeeping(), train).score([0]).tolist() == [[2]]
