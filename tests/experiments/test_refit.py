"""The chosen settings are trained again on training and validation, and lists never hold validation items."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import Ratings, measure, recommend, splits
from cranfield.experiments import Source, System, Tuning, run, search
from cranfield.experiments.stages import MODELS, RUNS
from cranfield.experiments.stages.data import learning_of, parts_of, split_of
from cranfield.rankings import HeldOut, Ranking, Serving, fitted
from cranfield.recommenders import EpochModel, recommender
from cranfield.splits import for_validation

WORLD = (Source("tiny", simulate="world(users=60, items=40, ratings=900)"),)
EPOCHS = "mf-pointwise(epochs=60, rate=0.3, negatives=2, patience=3, factors=4)"
TUNED = (System("near", "knn", tuning=Tuning({"k": (2, 5, 9)}, "P@5")),)


def _lists(line, name="near"):
    (cell,) = [cell for cell in line.units("cell") if cell.system.name == name]
    return line.read(RUNS, cell)


def _same(one, other):
    """Lists are the same; those that are empty are not stored."""
    np.testing.assert_array_equal(_rows(one), _rows(other))
    np.testing.assert_array_equal(one.items, other.items)


def _rows(run):
    return np.repeat(run.users, np.diff(run.indptr))


def _pairs(run):
    return set(zip(_rows(run).tolist(), run.items.tolist()))


def _cells(*parts):
    return set().union(*(zip(part.users.tolist(), part.items.tolist()) for part in parts))


SPLITS = ["random(train=0.7)", "temporal(train=0.7)", "temporal(train=0.7, target=first)", "leave_out(l=1, which=last)"]


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("refit", [True, False])
def test_what_a_search_has_chosen_is_trained_on_all_of_training_or_on_its_part(tiny, tmp_path, split, refit):
    line = run(tiny(data=WORLD, systems=TUNED, decisions={"split": split, "refit": refit}), tmp_path).line
    parts, lists = parts_of(line, line.units("part")[0]), _lists(line)
    best = search(parts, "knn", {"k": [2, 5, 9]}, "P@5", threshold=4).best.system
    (inner,) = for_validation(parts)
    train = parts.train if refit else inner.train
    expected = recommend(splits.Split(train, parts.test, parts.step), best)[0] if refit else None
    if expected is not None:
        _same(lists, expected)
    assert not _pairs(lists) & _cells(parts.train)
    assert learning_of(line, line.units("cell")[0]).train.fingerprint == train.fingerprint


def test_without_a_refit_all_systems_learn_from_the_training_part_of_a_search(tiny, tmp_path):
    systems = (*TUNED, System("liked", "average"))
    line = run(tiny(data=WORLD, systems=systems, decisions={"refit": False}), tmp_path).line
    parts = parts_of(line, line.units("part")[0])
    (inner,) = for_validation(parts)
    expected = recommend(splits.Split(inner.train, parts.test, parts.step, inner.test), "average", refit=False)[0]
    _same(_lists(line, "liked"), expected)


@pytest.mark.parametrize(
    "method", ["random(train=0.7{})", "temporal(train=0.7{})", "per_user(train=0.7, which=last{})"]
)
def test_with_a_validation_part_results_are_those_without_one_unless_something_stops_early(tiny, tmp_path, method):
    means = []
    for name, validation in (("plain", ""), ("part", ", validation=0.2")):
        results = run(tiny(decisions={"split": method.format(validation)}), tmp_path / name)
        means.append(results.averages()["mean"].to_list())
    assert means[0] == means[1]


def test_without_a_refit_a_part_of_the_split_is_only_left_out_of_the_lists(tiny, tmp_path):
    decisions = {"split": "random(train=0.7, validation=0.3)", "refit": False}
    line = run(tiny(decisions=decisions), tmp_path).line
    parts, lists = parts_of(line, line.units("part")[0]), _lists(line)
    _same(lists, recommend(parts, "knn(k=5)", refit=False)[0])
    assert not _pairs(lists) & _cells(parts.train, parts.validation)
    bare = recommend(parts.train, "knn(k=5)")[0]  # which knows nothing of the validation part
    assert _pairs(bare) & _cells(parts.validation)


@pytest.mark.parametrize("searched", [False, True])
def test_epochs_are_the_best_number_and_no_validation_part_is_given_then(tiny, tmp_path, searched):
    tuning = Tuning({"factors": (4,)}, "nDCG@10") if searched else None
    spelling = EPOCHS.replace(", factors=4", "") if searched else EPOCHS
    systems = (System("near", spelling, tuning=tuning), System("popularity", "popularity"))
    decisions = {"split": "random(train=0.8, validation=0.2)"}
    line = run(tiny(systems=systems, decisions=decisions), tmp_path).line
    parts = parts_of(line, line.units("part")[0])
    stopped = recommender(EPOCHS, 0).fit(parts.train, parts.validation)
    assert 1 <= stopped.best_epoch < 57
    again = recommender(EPOCHS.replace("60", str(stopped.best_epoch)), 0).fit(parts.joined.train)
    kept = line.read(MODELS, line.units("cell")[0])
    users = np.arange(parts.train.n_users)
    np.testing.assert_array_equal(kept.score(users), again.score(users))
    assert line.artifacts["models/tiny/near"].facts["training"]["epochs"] == stopped.best_epoch
    # The model is read, not trained, for lists of another length.
    further = run(tiny(systems=systems, decisions={**decisions, "length": 20, "metrics": ("P@10",)}), tmp_path).line
    assert further.artifacts["models/tiny/near"].key == line.artifacts["models/tiny/near"].key
    _same(_lists(further), recommend(parts, EPOCHS, length=20)[0])


def test_a_refit_goes_on_at_its_own_checkpoint(tmp_path, monkeypatch):
    ratings = Ratings.of(*np.nonzero(np.random.default_rng(0).random((40, 25)) < 0.4))
    split = splits.random(ratings, train=0.8, validation=0.3)
    parts = (split.train, split.validation)
    whole = fitted(recommender(EPOCHS, 0), *parts, None, split.joined.train)
    fit, calls = EpochModel.fit, []

    def broken(self, train, validation=None, *, checkpoint=None):
        calls.append(validation)
        if len(calls) == 2:
            self.epochs = max(1, self.epochs // 2)  # some of its epochs are made
            fit(self, train, validation, checkpoint=checkpoint)
            raise KeyboardInterrupt
        return fit(self, train, validation, checkpoint=checkpoint)

    path = tmp_path / "mf.npz"
    with monkeypatch.context() as patched:
        patched.setattr(EpochModel, "fit", broken)
        with pytest.raises(KeyboardInterrupt):
            fitted(recommender(EPOCHS, 0), *parts, path, split.joined.train)
    assert (tmp_path / "mf-refit.npz").exists()
    again = fitted(recommender(EPOCHS, 0), *parts, path, split.joined.train)
    np.testing.assert_array_equal(again.score(np.arange(40)), whole.score(np.arange(40)))
    assert not (tmp_path / "mf-refit.npz").exists()


def test_without_a_refit_a_system_stops_early_as_in_the_search(tiny, tmp_path):
    systems = (System("near", EPOCHS.replace(", factors=4", ""), tuning=Tuning({"factors": (4,)}, "nDCG@10")),)
    line = run(tiny(systems=systems, decisions={"refit": False}), tmp_path).line
    cell = line.units("cell")[0]
    (inner,) = for_validation(parts_of(line, cell))
    stopped = recommender(EPOCHS, 0).fit(inner.train, inner.test)
    users = np.arange(inner.train.n_users)
    np.testing.assert_array_equal(line.read(MODELS, cell).score(users), stopped.score(users))


def test_a_calibration_is_fitted_before_the_refit(tiny, tmp_path):
    decisions = {"split": "random(train=0.8, validation=0.3)", "calibration": "isotonic", "metrics": ("RMSE",)}
    systems = (System("near", "knn(k=5)"), System("liked", "average"))
    line = run(tiny(systems=systems, decisions=decisions), tmp_path).line
    parts, lists = parts_of(line, line.units("part")[0]), _lists(line)
    before = fitted(recommender("knn(k=5)"), parts.train)
    from cranfield.rankings.calibration import calibrate_system

    calibration = calibrate_system("near", before, HeldOut.of(parts, 0), "isotonic")
    assert lists.calibration == calibration
    whole = recommend(parts.joined, "knn(k=5)")[0]
    _same(lists, whole)
    np.testing.assert_array_equal(lists.predictions, calibration(whole.scores))
    (by_hand,) = recommend(parts, "knn(k=5)", calibration="isotonic")
    np.testing.assert_array_equal(by_hand.predictions, lists.predictions)


class Own:
    """A system that looks at a validation part."""

    def fit(self, train, validation=None):
        self.seen = (train.fingerprint, None if validation is None else validation.fingerprint)
        self.scores = train.item_counts.astype(float)

    def score(self, users):
        return np.tile(self.scores, (len(users), 1))


def test_a_system_of_ones_own_that_takes_a_validation_part_is_not_refitted():
    ratings = Ratings.of(*np.nonzero(np.random.default_rng(0).random((20, 15)) < 0.5))
    split = splits.random(ratings, train=0.8, validation=0.3)
    own = Own()
    recommend(split, {"own": own})
    assert own.seen == (split.train.fingerprint, split.validation.fingerprint)
    plain = type("Plain", (Own,), {"fit": lambda self, train: Own.fit(self, train)})()
    recommend(split, {"plain": plain})
    assert plain.seen == (split.joined.train.fingerprint, None)


def test_that_it_is_not_refitted_is_said(tiny, tmp_path):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nclass Mine:\n"
        "    def fit(self, train, validation=None):\n        self.counts = train.item_counts.astype(float)\n"
        "    def score(self, users):\n        return np.tile(self.counts, (len(users), 1))\n"
    )
    systems = (System("mine", "mine:Mine"), System("near", "knn(k=5)"))
    for split, said in (("random(validation=0.2)", True), ("random", False)):
        experiment = tiny(systems=systems, decisions={"split": split}, base=tmp_path)
        results = run(experiment, tmp_path / str(said), allow_code=True)
        assert any("mine is not refitted" in sentence for sentence in results.sentences("tiny")) == said


def test_held_out_users_of_validation_are_trained_on_whole(tiny, tmp_path):
    plain, asked = "strong_generalisation(users=0.3)", "strong_generalisation(users=0.3, validation=0.2)"
    systems = (System("near", "knn(k=5)"),)
    lines = [
        run(tiny(systems=systems, decisions={"split": split}), tmp_path / str(len(split))).line
        for split in (plain, asked)
    ]
    wholes = [split_of(line, line.units("part")[0]) for line in lines]
    assert wholes[0].train.fingerprint == wholes[1].train.fingerprint
    runs = [_lists(line) for line in lines]
    tested = np.flatnonzero(wholes[0].test.user_counts)
    values = [measure(lists, whole.test, ["P@10"], threshold=4) for lists, whole in zip(runs, wholes)]
    assert len(tested) == values[0].n_users
    np.testing.assert_array_equal(values[0].values, values[1].values)


def test_serving_counts_training_and_validation(tiny, tmp_path):
    decisions = {"split": "random(train=0.7, validation=0.5)", "min_ratings": 9}
    line = run(tiny(decisions=decisions), tmp_path).line
    parts = parts_of(line, line.units("part")[0])
    assert set(_lists(line).users.tolist()) == set(np.flatnonzero(parts.joined.train.user_counts >= 9).tolist())
    _same(_lists(line), recommend(parts, "knn(k=5)", **Serving(min_ratings=9).as_dict(), **_ranking())[0])


def _ranking():
    return {name: value for name, value in Ranking().as_dict().items() if name not in ("threshold",)}
