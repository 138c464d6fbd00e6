"""What holds for every split, whatever the method."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings, SettingError, read, splits
from cranfield._errors import ImpossibleSplitError
from cranfield._settings import settings
from cranfield.data import filters

METHODS = [
    "random(train=0.7)",
    "random(train=0.7, exact=true)",
    "per_user(train=0.6)",
    "per_user(train=0.6, which=last)",
    "leave_out(l=1, short=train)",
    "leave_out(l=2, which=last, short=train)",
    "k_fold(k=3)",
    "k_fold(k=3, per_user=true)",
    "temporal(train=0.7)",
    "train_per_item(l=2)",
    "uniform_test(sigma=0.2, epsilon=0.3)",
    "uniform_test(sigma=0.2, epsilon=0.3, rounding=down)",
    "percentiles(groups=2)",
]
ROWS = st.lists(
    st.tuples(st.integers(0, 7), st.integers(0, 7), st.integers(1, 5), st.integers(0, 9)),
    min_size=1,
    max_size=50,
    unique_by=lambda row: row[:2],
)


def _ratings(rows):
    users, items, values, times = zip(*rows)
    return Ratings.of(users, [f"i{item}" for item in items], values, times)


def _validation(method):
    return 1 if method.startswith("leave_out") else 0.3


@pytest.mark.parametrize("method", METHODS)
@given(rows=ROWS, seed=st.integers(0, 100), validated=st.booleans())
def test_the_parts_are_disjoint_and_together_the_whole(method, rows, seed, validated):
    ratings = _ratings(rows)
    try:
        divided = list(splits.apply(ratings, method, seed=seed, validation=_validation(method) if validated else None))
    except ImpossibleSplitError:
        return
    for one in divided:
        parts = [set(part.frame().rows()) for part in one.parts.values()]
        assert len(parts) == (3 if validated else 2)
        assert all(parts)
        assert sum(map(len, parts)) == len(ratings)
        assert set.union(*parts) == set(ratings.frame().rows())
        for part in one.parts.values():
            assert part.user_ids is ratings.user_ids
            assert part.item_ids is ratings.item_ids
            assert (np.diff(part.indptr) >= 0).all()
        assert one.step.effect["train"] == len(one.train)
        assert one.step.effect["test"] == len(one.test)
        assert one.train.history[-1] is one.step


@pytest.mark.parametrize("method", METHODS)
@given(rows=ROWS, random=st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(method, rows, random):
    shuffled = random.sample(rows, len(rows))
    assert _outcome(_ratings(rows), method) == _outcome(_ratings(shuffled), method)


@pytest.mark.parametrize(
    "method",
    [*METHODS, "temporal(target=random, new_items=drop)", "rolling(windows=2, horizon=20)",
     "cold_items(left=1, warm=0.3)", "strong_generalisation(given=2)"],
)  # fmt: skip
def test_the_number_of_threads_does_not_matter(method, tmp_path, monkeypatch):
    _grid().frame().write_csv(tmp_path / "ratings.csv")
    outcomes = []
    for threads in (1, 4):
        monkeypatch.setattr(settings, "threads", threads)
        outcomes.append(_outcome(read(tmp_path / "ratings.csv"), method))
    assert outcomes[0] == outcomes[1]


def _outcome(ratings, method):
    try:
        divided = splits.apply(ratings, method, seed=11, validation=_validation(method))
        return [(one.record()["fingerprints"], dict(one.step.effect), one.notes) for one in divided]
    except ImpossibleSplitError as error:
        return str(error)


@pytest.mark.parametrize("method", METHODS)
def test_a_validation_part_does_not_change_the_test_part(method):
    ratings = _grid()
    without, with_it = (splits.apply(ratings, method, seed=5, validation=v) for v in (None, _validation(method)))
    for a, b in zip(without, with_it, strict=True):
        assert a.validation is None
        assert a.test.fingerprint == b.test.fingerprint
        assert len(a.train) == len(b.train) + len(b.validation)


@pytest.mark.parametrize("method", [method for method in METHODS if not method.startswith("temporal")])
def test_the_seed_decides(method):
    ratings = _grid(times=False) if "last" not in method else _grid()
    one, same, other = (splits.apply(ratings, method, seed=seed)[0].test.fingerprint for seed in (1, 1, 2))
    assert one == same
    assert one != other


@pytest.mark.parametrize("block", [1, 7, 100])
def test_the_size_of_the_blocks_does_not_matter(block, monkeypatch):
    whole = [_outcome(_grid(), method) for method in METHODS]
    monkeypatch.setattr("cranfield.splits.parts._BLOCK", block)
    assert [_outcome(_grid(), method) for method in METHODS] == whole


FROZEN = {
    "random(train=0.7)": "1fb0502eaad9",
    "random(train=0.7, exact=true)": "0b0d4141cc71",
    "per_user(train=0.6)": "8f74586d62a5",
    "per_user(train=0.6, which=last)": "4dc168b42ad3",
    "leave_out(l=1, short=train)": "231506c7aae3",
    "k_fold(k=3)": "c613e65e36e7",
    "k_fold(k=3, per_user=true)": "b301dd45c4a5",
    "temporal(train=0.7)": "035535e26ced",
    "train_per_item(l=2)": "38c49f495a85",
    "uniform_test(sigma=0.2, epsilon=0.3)": "26c15eefa777",
    "percentiles(groups=2)": "07b92fbb895e",
    "tail_test(head=0.3)": "b0012b32b95b",
}


@pytest.mark.parametrize("method", FROZEN)
def test_a_seed_gives_the_split_it_has_always_given(method):
    """If this fails, the random stream of a split has changed: people's recorded experiments would too."""
    digest = hashlib.sha256()
    for one in splits.apply(_grid(), method, seed=7, validation=_validation(method)):
        for part in one.parts.values():
            for codes in (part.users, part.items):
                digest.update(codes.astype("<i4").tobytes() + b"\x1e")
    assert digest.hexdigest()[:12] == FROZEN[method]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_cannot_be_split(method):
    with pytest.raises(ImpossibleSplitError, match="no ratings to split"):
        splits.apply(Ratings.of([], []), method)


@pytest.mark.parametrize("method", METHODS)
def test_a_single_rating_is_no_split(method):
    with pytest.raises(ImpossibleSplitError):
        list(splits.apply(Ratings.of([1], [1], times=[1]), method))


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("random(train=1)", "train=1 is not a share"),
        ("random(train=0)", "train=0 is not a share"),
        ("random(train=most)", "train=most of random is not a number"),
        ("random(exact=1)", "exact=1 of random is neither true nor false"),
        ("per_user(which=first)", "which='first' is not one of random, last"),
        ("leave_out(l=0)", "l=0 is not a whole number of at least 1"),
        ("leave_out(l=1.5)", "l=1.5 of leave_out is not a whole number"),
        ("k_fold(k=1)", "k=1 is not a whole number of at least 2"),
        ("temporal(train=0.5, at=2001-01-01)", "train or at, not both"),
        ("temporal(at=soon)", "at='soon' is not a moment"),
        ("train_per_item", "train_per_item needs l"),
        ("uniform_test(epsilon=1)", "epsilon=1 is not a share"),
        ("uniform_test(rounding=up)", "rounding='up' is not one of nearest, down"),
        ("percentiles(groups=1)", "groups=1 is not a whole number"),
        ("randm(train=0.8)", "there is no split 'randm'; did you mean 'random'?"),
        ("temporal(at=inf)", "at=inf is not a moment"),
        (
            "random(tain=0.8)",
            "random has no parameter 'tain'; did you mean 'train'?",
        ),
        ("random(zzz=0.8)", "random has no parameter 'zzz'; known: exact, seed, test, train, unit, validation"),
    ],
)
def test_a_wrong_setting_is_named(method, message):
    with pytest.raises(SettingError) as error:
        splits.apply(_grid(), method)
    assert message in str(error.value)


@pytest.mark.parametrize("validation", [0, 1, -0.1, "some"])
def test_a_validation_share_lies_between_0_and_1(validation):
    for method in METHODS:
        if not method.startswith("leave_out"):
            with pytest.raises(SettingError, match="validation="):
                splits.apply(_grid(), method, validation=validation)


@pytest.mark.parametrize(
    "method", ["temporal", "temporal(at=2001-01-01)", "per_user(which=last)", "leave_out(which=last)"]
)
def test_a_temporal_split_needs_times(method):
    with pytest.raises(ImpossibleSplitError, match="the ratings of the 2 users have none"):
        splits.apply(Ratings.of([1, 1, 2, 2], [1, 2, 1, 2]), method)


def test_cold_users_and_items_are_counted():
    train, test = Ratings.of([1, 1], ["a", "b"]), Ratings.of([1, 2, 2], ["c", "a", "c"])
    made = splits.predefined(train, test)
    assert made.step.effect["cold_users"] == 1
    assert made.step.effect["cold_items"] == 1
    assert made.notes == (
        "cold start: 1 user and 1 item of the test part have no training rating (3 test ratings, 100.0%)",
    )


@given(rows=ROWS, seed=st.integers(0, 9))
def test_leakage_in_time_is_counted_as_defined(rows, seed):
    try:
        made = splits.random(_ratings(rows), train=0.6, seed=seed)
    except ImpossibleSplitError:
        return
    train, test = (part.frame().rows() for part in (made.train, made.test))
    precede = sum(any(t[0] == r[0] and t[3] < r[3] for r in train) for t in test)
    median = np.median([r[3] for r in train])
    assert made.step.effect["test_before_own_train"] == precede
    assert made.step.effect["test_share_older_than_train_median"] == np.mean([t[3] < median for t in test])
    assert any(f"{precede:,} test rating" in note and "median" in note for note in made.notes)


def test_without_times_nothing_is_said_about_leakage():
    made = splits.random(_grid(times=False), train=0.5)
    assert "test_before_own_train" not in made.step.effect
    assert not any("leakage" in note for note in made.notes)


def test_the_steps_before_the_split_stay_in_the_record():
    made = splits.random(filters.min_ratings(_grid(), user=3), train=0.5, seed=1)
    assert [step["action"] for step in made.record()["data"]["history"]] == ["min_ratings"]
    assert made.record()["split"]["action"] == "split.random"


def test_parts_over_different_vocabularies_are_refused():
    made = splits.random(_grid(), train=0.5)
    with pytest.raises(SettingError, match="share one vocabulary"):
        splits.Split(made.train, Ratings.of(["x"], ["y"]), made.step)


def _grid(times=True):
    """Return the same uneven ratings on every platform: user u rates item i when a fixed rule says so."""
    pairs = [(u, i) for u in range(20) for i in range(15) if (u * 7 + i * 5) % (i + 2) < 3]
    users, items = zip(*pairs)
    return Ratings.of(
        users,
        items,
        [1 + (u + i) % 5 for u, i in pairs],
        [(u * 31 + i * 17) % 23 // 6 for u, i in pairs] if times else None,
    )


@pytest.mark.parametrize("method", [method for method in METHODS if not method.startswith("temporal")])
def test_without_a_seed_the_seed_is_0(method):
    rng = np.random.default_rng(1)
    rows = [(user, item, 5, int(rng.integers(9))) for user in range(20) for item in range(12) if rng.random() < 0.7]
    without, with_it = (splits.registry.call(method, _ratings(rows), **seed) for seed in ({}, {"seed": 0}))
    if not method.startswith("k_fold"):
        without, with_it = [without], [with_it]
    for one, other in zip(without, with_it, strict=True):
        assert one.test.frame().equals(other.test.frame())


@pytest.mark.parametrize("method", [method for method in METHODS if not method.startswith("percentiles")])
def test_cold_users_and_items_are_those_of_the_test_part_that_training_does_not_have(method):
    rng = np.random.default_rng(2)
    rows = [(user, item, 5, int(rng.integers(9))) for user in range(20) for item in range(12) if rng.random() < 0.4]
    rows += [(20 + number, 12 + number, 5, number) for number in range(9)]
    for one in splits.apply(_ratings(rows), method, validation=_validation(method)):
        train, test = one.train.frame(), one.test.frame()
        cold = {name: len(set(test[name]) - set(train[name])) for name in ("user", "item")}
        assert (one.step.effect["cold_users"], one.step.effect["cold_items"]) == (cold["user"], cold["item"])
