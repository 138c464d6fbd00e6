"""Training by epochs: early stopping, checkpoints, and what is shown and recorded."""

from __future__ import annotations

import json

import numpy as np
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield.data import Ratings
from cranfield.rankings.fitting import fitted
from cranfield.recommenders import read_model, recommender, save_model
from cranfield.recommenders.epochs import EpochModel, ValidationPart

FAST = "mf-pointwise(factors=4, epochs={epochs}, rate=0.05, negatives=2, patience=0)"


@pytest.fixture(scope="module")
def split():
    ratings = cf.simulate.world(60, 40, 1200, seed=2, times=False).ratings
    return cf.splits.random(ratings, train=0.7, validation=0.15, seed=1)


class _Stopped(Exception):
    pass


def _stop_after(monkeypatch, epochs):
    """Let a training be stopped when so many epochs are done and kept."""
    advance = cf._terminal.Progress.advance

    def stopping(self, *arguments, **named):
        advance(self, *arguments, **named)
        if self.unit == "epochs" and self.done == epochs:
            raise _Stopped

    monkeypatch.setattr("cranfield._terminal.Progress.advance", stopping)


@pytest.mark.parametrize("spelling", [FAST.format(epochs=6), "ials(factors=4, epochs=6)"])
def test_a_training_that_was_stopped_goes_on_as_if_it_had_not_been(split, spelling, tmp_path, monkeypatch):
    whole = recommender(spelling).fit(split.train, split.validation)
    path = tmp_path / "c.npz"
    with monkeypatch.context() as patch:
        _stop_after(patch, 3)
        with pytest.raises(_Stopped):
            recommender(spelling).fit(split.train, split.validation, checkpoint=path)
    again = recommender(spelling).fit(split.train, split.validation, checkpoint=path)
    assert again.history == whole.history
    np.testing.assert_array_equal(again.score(np.arange(60)), whole.score(np.arange(60)))


def test_more_epochs_go_on_from_the_checkpoint_of_fewer(split, tmp_path):
    path = tmp_path / "c.npz"
    recommender(FAST.format(epochs=2)).fit(split.train, checkpoint=path)
    longer = recommender(FAST.format(epochs=4)).fit(split.train, checkpoint=path)
    straight = recommender(FAST.format(epochs=4)).fit(split.train)
    np.testing.assert_array_equal(longer.score([3]), straight.score([3]))
    with pytest.raises(InputError, match="this checkpoint has 4 epochs, more than epochs=3; name another file"):
        recommender(FAST.format(epochs=3)).fit(split.train, checkpoint=path)


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ("mf-pointwise(factors=4, epochs=1, negatives=3)", "negatives 3, not 2"),
        ("ials(factors=4, epochs=1)", "system ials, not mf-pointwise"),
    ],
)
def test_the_checkpoint_of_another_training_is_refused_and_stays(split, tmp_path, other, named):
    path = tmp_path / "c.npz"
    recommender(other).fit(split.train, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=f"{named}.*name another file, or remove this one"):
        recommender(FAST.format(epochs=2)).fit(split.train, checkpoint=path)
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_ratings_another_version_or_damaged_is_refused(split, tmp_path, monkeypatch):
    path, spelling = tmp_path / "c.npz", FAST.format(epochs=1)
    recommender(spelling).fit(split.train, checkpoint=path)
    with pytest.raises(InputError, match="a different training run \\(train"):
        recommender(spelling).fit(split.test, checkpoint=path)
    with monkeypatch.context() as patch:
        patch.setattr("cranfield.recommenders.saving.__version__", "9.9")
        with pytest.raises(InputError, match=r"cranfield .*, not 9\.9"):
            recommender(spelling).fit(split.train, checkpoint=path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="not a checkpoint, or it is damaged"):
        recommender(spelling).fit(split.train, checkpoint=path)


def test_a_checkpoint_in_a_folder_of_ours_gives_way(split, tmp_path):
    path = tmp_path / "c.npz"
    recommender(FAST.format(epochs=1)).fit(split.test, checkpoint=path)
    model = fitted(recommender(FAST.format(epochs=2)), split.train, None, path)
    assert isinstance(model, EpochModel)
    assert len(model.history) == 2


def test_training_ends_when_the_validation_part_says_so_and_the_best_epoch_is_kept(split):
    spelling = "mf-pointwise(factors=4, epochs=60, rate=0.3, negatives=2, patience=3)"
    model = recommender(spelling).fit(split.train, split.validation)
    values = [entry["validation"] for entry in model.history]
    best = int(np.argmax(values))
    assert len(values) == best + 1 + 3 < 60
    held_out = ValidationPart.of(split.train.compact(), split.validation, False, 0)
    assert held_out.value(model._score) == values[best]


def test_without_a_validation_part_every_epoch_is_made(split):
    model = recommender("ials(factors=3, epochs=4, patience=1)").fit(split.train)
    assert [entry["validation"] for entry in model.history] == [None] * 4


def test_the_validation_part_of_a_split_reaches_the_system_through_recommend(split, monkeypatch):
    seen = []
    fit = EpochModel.fit
    monkeypatch.setattr(
        EpochModel, "fit", lambda self, train, validation=None, *, checkpoint=None: seen.append(validation)
        or fit(self, train, validation, checkpoint=checkpoint),
    )  # fmt: skip
    cf.recommend(split, "ials(factors=2, epochs=1)", refit=False)
    assert seen == [split.validation]
    cf.recommend(split, "ials(factors=2, epochs=1)")
    assert seen[1:] == [split.validation, None]  # the second time for the refit


def test_a_system_of_ones_own_gets_the_validation_part_if_it_asks_for_it(split):
    class Own:
        def fit(self, train, validation=None):
            self.validation, self.n_items = validation, train.n_items
            return self

        def score(self, users):
            return np.zeros((len(users), self.n_items))

    own = Own()
    cf.recommend(split, own)
    assert own.validation is split.validation


def test_the_value_on_the_validation_part_is_ndcg_or_rmse(split):
    known = split.validation.keep((split.train.item_counts > 0)[split.validation.items])
    scores = np.random.default_rng(0).random((60, split.train.n_items))
    (run,) = cf.recommend(cf.Split(split.train, known, split.step), lambda _, users: scores[users], length=10)
    expected = cf.measure([run], known, ["nDCG(gain=binary)@10"], threshold=-1e9).average()[0, 0]
    train = split.train.compact()
    assert train.n_users == 60
    own = scores[:, split.train.item_counts > 0]
    assert ValidationPart.of(train, split.validation, False, 0).value(lambda users: own[users]) == pytest.approx(
        expected
    )
    error = ValidationPart.of(train, split.validation, True, 0).value(lambda users: np.full((len(users), 99), 3.0))
    assert error == pytest.approx(np.sqrt(np.mean((known.values - 3) ** 2)))


def test_a_kept_model_says_how_it_was_trained(split, tmp_path):
    model = recommender("ials(factors=3, epochs=2)").fit(split.train)
    kept = read_model(save_model(model, tmp_path / "m.npz"), "ials(factors=3, epochs=2)", split.train)
    assert kept.training == model.training == {"epochs": 2, "by": "numpy, on any number of threads"}
    assert kept.history == model.history


def test_a_step_that_is_too_large_is_said_and_the_last_checkpoint_stays(split, tmp_path):
    path = tmp_path / "c.npz"
    with pytest.raises(SettingError, match="mf-pointwise does not converge with rate=1e"):
        recommender("mf-pointwise(factors=4, epochs=5, rate=1e30)").fit(split.train, checkpoint=path)
    assert not path.exists()


def test_a_validation_part_of_strangers_changes_nothing(split):
    strangers = Ratings.of(["x"], ["y"])
    alone, beside = (
        recommender("ials(factors=3, epochs=3, patience=1)").fit(split.train, validation)
        for validation in (None, strangers)
    )
    np.testing.assert_array_equal(alone.score([0]), beside.score([0]))


def test_an_experiment_that_is_stopped_while_it_trains_goes_on_from_the_checkpoint(tmp_path, monkeypatch):
    from cranfield.experiments import Experiment, Source, System, run

    tiny = Source("tiny", simulate="world(users=60, items=40, ratings=900)")
    experiment = Experiment(data=(tiny,), systems=(System("mf", FAST.format(epochs=5)), System("a", "popularity")))
    with monkeypatch.context() as patch:
        _stop_after(patch, 3)
        with pytest.raises(_Stopped):
            run(experiment, tmp_path / "out")
    (left,) = (tmp_path / "out" / ".cranfield" / "unfinished").iterdir()
    with np.load(left, allow_pickle=False) as arrays:
        assert len(arrays["losses"]) == 3
        assert json.loads(str(arrays["checkpoint"]))["system"] == "mf-pointwise"
    run(experiment, tmp_path / "out")
    assert not (tmp_path / "out" / ".cranfield" / "unfinished").exists()
    records = [
        json.loads(path.read_text()) for path in (tmp_path / "out" / ".cranfield" / "store").rglob("record.json")
    ]
    (facts,) = [record["facts"] for record in records if record["name"].startswith("models/") and record["facts"]]
    assert facts == {"training": {"epochs": 5, "by": "numba, on 1 thread"}}
