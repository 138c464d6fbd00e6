"""Train and rank; one system under several decisions is scored once."""

from __future__ import annotations

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from cranfield import InputError, SettingError, simulate
from cranfield._settings import settings
from cranfield.data import Ratings
from cranfield.rankings import Ranking, Serving, Targets, rank, rank_under
from cranfield.rankings.recommending import recommend
from cranfield.recommenders import recommender
from cranfield.splits import Split, random
from cranfield.splits import random as random_split
from cranfield.tables import Vocabulary

RANKINGS = [
    Ranking(length=5),
    Ranking(length="all", lists="condensed"),
    Ranking(length=7, fill="popularity"),
    Ranking(length=10, nonrelevant=8, threshold=4),
    Ranking(length=10, relevant="one", threshold=4),
    *(Ranking(length=10, unrated=unrated, fill=fill) for unrated in (3, 0, 9, 100) for fill in ("none", "random")),
    Ranking(length=10, unrated=4, candidates="test"),
    *(Ranking(length=10, nonrelevant=count, relevant="one", threshold=4, candidates="test") for count in (2, 9, 5)),
    Ranking(length=10, nonrelevant=4, relevant="one", threshold=3, candidates="test"),
    Ranking(length=10, nonrelevant=12, threshold=4, candidates="test"),
]


@pytest.fixture(scope="module")
def split():
    return random(simulate.world(users=60, items=40, ratings=900, seed=2).ratings, train=0.5, seed=2)


@pytest.mark.parametrize("spelling", ["knn(k=3)", "average", "random", "popularity"])
def test_lists_under_several_decisions_are_those_under_each(spelling, split):
    model, serving = recommender(spelling).fit(split.train), Serving(min_ratings=5)
    for run, ranking in zip(rank_under(model, split, RANKINGS, serving=serving, seed=3), RANKINGS, strict=True):
        alone = rank(model, split, serving=serving, ranking=ranking, seed=3)
        for column in ("users", "indptr", "items", "scores", "ranks", "lengths", "predictions"):
            np.testing.assert_array_equal(getattr(run, column), getattr(alone, column))
        assert run.history == alone.history


def test_a_system_that_gives_its_own_lists_is_ranked_each_way(split):
    class Own:
        def fit(self, train):
            return self

        def score(self, users):
            raise AssertionError("its lists are its own")

        def top(self, users, n, targets):
            allowed = targets.allowed(users)
            items = np.where(allowed.any(axis=1), allowed.argmax(axis=1), -1)[:, None]
            return items, np.ones(items.shape)

    short, condensed = rank_under(Own(), split, RANKINGS[:2], name="own")
    assert (np.diff(short.indptr) == 1).all()
    assert len(condensed.items) == np.count_nonzero(split.test.user_counts)


def test_no_decisions_make_no_runs(split):
    assert rank_under(recommender("popularity").fit(split.train), split, []) == []


class Given:
    """A system whose scores are given."""

    def __init__(self, scores):
        self.scores = np.asarray(scores, dtype=float)

    def fit(self, train):
        return self

    def score(self, users):
        return self.scores[users]


def _world(seed=0, users=12, items=25):
    draw = np.random.default_rng(seed)
    rated = draw.random((users, items)) < 0.5
    user, item = (column.astype(np.int32) for column in np.nonzero(rated))
    vocabularies = Vocabulary.of(range(users)), Vocabulary.of(range(items))
    ratings = Ratings.from_codes(*vocabularies, user, item, draw.integers(1, 6, len(user)).astype(float))
    return random_split(ratings, train=0.6, seed=seed)


def _scores(split, seed=0, gaps=0.2, values=6):
    """Scores with ties and gaps."""
    draw = np.random.default_rng(seed)
    scores = draw.integers(0, values, (split.train.n_users, split.train.n_items)).astype(float)
    scores[draw.random(scores.shape) < gaps] = np.nan
    return scores


def _profile(ratings, user, threshold=-np.inf):
    part = ratings.profile(user)
    return {int(i) for i, r in zip(ratings.items[part], ratings.values[part], strict=True) if r >= threshold}


def _ranked(split, scores, user, items):
    """The items of a list, by descending score and then by descending id as text."""
    known = [i for i in items if not np.isnan(scores[user, i])]
    text = split.train.item_ids.all.cast(str).to_list()
    return sorted(sorted(known, key=lambda i: text[i], reverse=True), key=lambda i: -scores[user, i])


def _lists(run):
    return {int(u): run.items[run.indptr[k] : run.indptr[k + 1]].tolist() for k, u in enumerate(run.users)}


@given(seed=st.integers(0, 50), n=st.sampled_from([1, 3, 10, None]), keep=st.booleans())
def test_lists_are_the_best_scored_unseen_items(seed, n, keep):
    split = _world(seed)
    scores = _scores(split, seed)
    (run,) = recommend(split, Given(scores), n, keep_seen=keep)
    for user, found in _lists(run).items():
        seen = set() if keep else _profile(split.train, user)
        assert found == _ranked(split, scores, user, set(range(25)) - seen)[:n]
        place = np.flatnonzero(run.users == user)[0]
        assert run.scores[run.indptr[place] : run.indptr[place + 1]].tolist() == scores[user, found].tolist()


def test_runs_share_the_vocabularies_and_tell_how_they_were_made():
    split = _world()
    first, second = recommend(split, ["popularity", "knn(k=3)"], length=5, min_ratings=2)
    assert first.user_ids is split.train.user_ids
    assert second.item_ids is split.train.item_ids
    assert (first.name, second.name) == ("popularity", "knn(k=3)")
    actions = [step.action for step in second.history]
    assert actions[-3:] == ["serve", "targets", "recommend"]
    assert second.history[-1].settings["system"] == "knn(k=3)"


def test_lists_do_not_depend_on_threads_or_blocks(monkeypatch):
    split = _world(3, users=40)
    systems = ["popularity", "knn(k=3)", "random", "puresvd(factors=3)"]
    whole = recommend(split, systems, length=7, fill="random")
    monkeypatch.setattr(sys.modules["cranfield.recommenders.work"], "_CELLS", 1)
    monkeypatch.setattr(settings, "threads", 3)
    for one, other in zip(whole, recommend(split, systems, length=7, fill="random"), strict=True):
        assert one.items.tolist() == other.items.tolist()


def test_training_ratings_alone_are_enough_for_full_lists():
    split = _world()
    (alone,), (both,) = recommend(split.train, "popularity"), recommend(split, "popularity")
    assert alone.items.tolist() == both.items.tolist()


@given(seed=st.integers(0, 30))
def test_candidates_may_be_the_items_of_the_test_set(seed):
    split, scores = _world(seed), _scores(_world(seed), seed)
    (run,) = recommend(split, Given(scores), None, candidates="test")
    candidates = set(split.test.items.tolist())
    for user, found in _lists(run).items():
        assert found == _ranked(split, scores, user, candidates - _profile(split.train, user))


@given(seed=st.integers(0, 30))
def test_condensed_lists_hold_what_the_user_rated_in_the_test_set(seed):
    split, scores = _world(seed), _scores(_world(seed), seed)
    (run,) = recommend(split, Given(scores), 5, lists="condensed")
    for user, found in _lists(run).items():
        assert found == _ranked(split, scores, user, _profile(split.test, user))[:5]


@given(seed=st.integers(0, 30), count=st.integers(1, 30))
def test_drawn_targets_are_the_same_for_every_system(seed, count):
    split = _world(seed)
    first, second = recommend(
        split,
        {"a": Given(_scores(split, 1, gaps=0)), "b": Given(_scores(split, 2, gaps=0))},
        None,
        nonrelevant=count,
        threshold=4,
        seed=seed,
    )
    for user, items in _lists(first).items():
        relevant, seen = _profile(split.test, user, 4), _profile(split.train, user)
        drawn = set(items) - relevant
        assert set(items) == set(_lists(second)[user])
        assert relevant <= set(items)
        assert not drawn & seen
        assert len(drawn) == min(count, 25 - len(relevant | seen))


def test_a_users_draw_does_not_depend_on_who_else_is_served():
    split = _world(1)
    options = {"nonrelevant": 3, "threshold": 4, "seed": 5}
    (everyone,) = recommend(split, "popularity", None, **options)
    (some,) = recommend(split, "popularity", None, sample=4, **options)
    assert len(some) == 4
    for user, items in _lists(some).items():
        assert items == _lists(everyone)[user]
    (other,) = recommend(split, "popularity", None, **{**options, "seed": 6})
    assert other.items.tolist() != everyone.items.tolist()


@given(
    seed=st.integers(0, 30),
    nonrelevant=st.sampled_from([None, 4]),
    n=st.sampled_from([None, 3]),
    candidates=st.sampled_from(["all", "test"]),
    lists=st.sampled_from(["full", "condensed"]),
    fill=st.sampled_from([None, "popularity"]),
)
def test_one_relevant_ranks_are_those_of_the_lists_made_one_by_one(seed, nonrelevant, n, candidates, lists, fill):
    split, scores = _world(seed), _scores(_world(seed), seed)
    options = {"nonrelevant": nonrelevant, "candidates": candidates, "lists": lists, "fill": fill}
    (run,) = recommend(split, Given(scores), n, relevant="one", threshold=4, seed=seed, **options)
    # The same pool as one list per user: all targets except the relevant items.
    (whole,) = recommend(split, Given(scores), None, threshold=4, seed=seed, **options)
    assert run.one_relevant
    assert run.indptr.tolist() == list(range(len(run) + 1))
    pairs = list(zip(run.users.tolist(), run.items.tolist(), strict=True))
    users = range(split.train.n_users)
    assert pairs == [(u, i) for u in users for i in sorted(_profile(split.test, u, 4))]
    for (user, item), place, length in zip(pairs, run.ranks, run.lengths, strict=True):
        relevant = _profile(split.test, user, 4)
        alone = [i for i in _lists(whole)[user] if i == item or i not in relevant]
        expected = alone.index(item) + 1 if item in alone else 0
        assert place == (expected if n is None or expected <= n else 0)
        assert length == (len(alone) if n is None else min(n, len(alone)))


@given(seed=st.integers(0, 30), n=st.sampled_from([3, None]))
def test_the_fill_comes_after_every_computed_item(seed, n):
    split = _world(seed)
    scores = _scores(split, seed, gaps=0.7)
    popularity = np.tile(split.train.item_counts.astype(float), (split.train.n_users, 1))
    (run,) = recommend(split, Given(scores), n, fill="popularity")
    for user, found in _lists(run).items():
        open_items = set(range(25)) - _profile(split.train, user)
        computed = _ranked(split, scores, user, open_items)
        assert found == (computed + _ranked(split, popularity, user, open_items - set(computed)))[:n]
    assert all((np.diff(run.scores[a:b]) <= 0).all() for a, b in zip(run.indptr[:-1], run.indptr[1:], strict=True))


@pytest.mark.parametrize("fill", ["none", "random", "popularity", "average", "knn(k=2)", recommender("average")])
def test_any_system_may_fill(fill):
    split = _world()
    (run,) = recommend(split, "knn(k=1)", None, fill=fill)
    (bare,) = recommend(split, "knn(k=1)", None)
    for user, items in _lists(bare).items():
        assert _lists(run)[user][: len(items)] == items
    assert (len(run.items) > len(bare.items)) == (fill != "none" and fill != "knn(k=1)")


def test_minus_infinity_is_a_gap_and_a_user_without_scores_has_an_empty_list():
    split = _world()
    scores = np.full((12, 25), -np.inf)
    scores[3] = np.arange(25)
    (run,) = recommend(split, Given(scores), 5)
    assert np.flatnonzero(np.diff(run.indptr)).tolist() == [3]
    assert run.counts["empty_lists"] == 11


def test_only_predictors_of_ratings_give_predictions():
    split = _world()
    runs = recommend(split, ["svd(epochs=2)", "average", "popularity"], length=5)
    assert [run.predictions is not None for run in runs] == [True, True, False]


def test_who_is_served_is_counted():
    split = _world(2)
    (run,) = recommend(split, "popularity", min_ratings=7, sample=0.5)
    counts = split.train.user_counts
    enough = int((counts >= 7).sum())
    serve = next(step for step in run.history if step.action == "serve")
    assert serve.effect["too few ratings"] == 12 - enough
    assert len(run) == serve.effect["served"] == int(0.5 * enough + 0.5)
    assert (counts[run.users] >= 7).all()


def test_a_share_of_the_users_reads_in_decimals_and_may_be_of_any_kind():
    train = Ratings.of(range(50), range(50))
    for share, served in ((0.29, 15), (0.57, 29), (np.float32(0.5), 25), (Fraction(1, 4), 13)):
        assert len(recommend(train, "popularity", 1, sample=share)[0]) == served


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 0}, "length=0"),
        ({"length": 2.5}, "length=2.5"),
        ({"min_ratings": -1}, "min_ratings=-1"),
        ({"sample": 0}, "sample=0"),
        ({"sample": 1.5}, "sample=1.5"),
        ({"candidates": "tests"}, "did you mean 'test'"),
        ({"relevant": "two"}, "relevant='two'"),
        ({"nonrelevant": 0, "threshold": 4}, "nonrelevant=0"),
        ({"nonrelevant": 5, "threshold": None}, "give a threshold"),
        ({"relevant": "one", "threshold": None}, "give a threshold"),
        ({"fill": "populartiy"}, "did you mean 'popularity'"),
        ({"threshold": "4"}, "threshold='4'"),
        ({"lists": "condensd"}, "lists='condensd' is not one of full, condensed; did you mean 'condensed'?"),
        ({"keep_seen": "false"}, "keep_seen='false'"),
        ({"seed": -1}, "seed=-1"),
        ({"min_ratings": 99}, "nobody has 99 training ratings"),
        ({"relevant": "one", "threshold": 9}, "no user who is served has a test rating of 9 or more"),
        ({"seed": "a"}, "seed='a'"),
    ],
)
def test_a_wrong_option_is_one_line(options, message):
    with pytest.raises(SettingError) as error:
        recommend(_world(), "popularity", **options)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_numbers_may_be_of_any_kind():
    split = _world()
    (plain,) = recommend(split, "random", nonrelevant=5, threshold=4, seed=3)
    (other,) = recommend(split, "random", nonrelevant=5.0, threshold=np.float64(4), seed=np.int64(3))
    assert other.items.tolist() == plain.items.tolist()


def test_a_wrong_fill_is_refused_before_anything_is_trained():
    def waste(train, users):
        pytest.fail("the system was asked")

    with pytest.raises(SettingError, match="did you mean 'popularity'"):
        recommend(_world(), {"mine": waste}, fill="populartiy")


@pytest.mark.parametrize(
    "options", [{"candidates": "test"}, {"lists": "condensed"}, {"relevant": "one", "threshold": 4}]
)
def test_what_needs_a_test_set_says_so(options):
    with pytest.raises(SettingError, match="needs the test ratings"):
        recommend(_world().train, "popularity", **options)


def test_an_empty_training_set_and_scores_of_another_shape_are_refused():
    split = _world()
    nothing = split.train.keep(np.zeros(len(split.train), dtype=bool))
    with pytest.raises(InputError, match="holds no ratings"):
        recommend(Split(nothing, split.test, split.step), "popularity")
    with pytest.raises(InputError, match=r"narrow returned scores of shape \(12, 24\)"):
        recommend(split, {"narrow": Given(np.zeros((12, 24)))})


@pytest.mark.parametrize(
    "wrong",
    [np.full((12, 25), "a"), [[1.0], [1.0, 2.0]], np.full((12, 25), 1j), sparse.csr_array((12, 25))],
    ids=["text", "ragged", "complex", "sparse"],
)
def test_scores_that_are_no_numbers_are_refused(wrong):
    with pytest.raises(InputError, match=r"mine returned a .* as scores, not an array of real numbers; return one row"):
        recommend(_world(), {"mine": lambda train, users: wrong})


@pytest.mark.parametrize("data", ["train.csv", {"user": [1], "item": [2]}, None])
def test_what_is_neither_a_split_nor_ratings_is_refused(data):
    with pytest.raises(SettingError, match=r"is neither a split nor ratings; make ratings .* with cf\.read"):
        recommend(data, "popularity")


def test_a_new_user_has_no_list_unless_new_users_are_served():
    train = Ratings.of(["a", "a", "b", "c"], ["x", "y", "x", "z"]).keep(np.array([True, True, True, False]))
    assert 2 not in _lists(recommend(train, "popularity")[0])
    popularity, knn = recommend(train, ["popularity", "knn"], new_users="served")
    assert _lists(popularity)[2] == [0, 1]
    assert _lists(knn)[2] == []


def _grouped(seed, groups=4):
    split = _world(seed)
    draw = np.random.default_rng(seed)
    return replace(split, item_groups=draw.permutation(np.arange(25) % groups).astype(np.int16))


@given(seed=st.integers(0, 30), nonrelevant=st.sampled_from(["all", 3]), length=st.sampled_from(["all", 2]))
def test_a_relevant_item_is_ranked_among_those_of_its_popularity_group(seed, nonrelevant, length):
    split, scores = _grouped(seed), _scores(_world(seed), seed)
    options = {"relevant": "one", "threshold": 4, "nonrelevant": nonrelevant, "seed": seed}
    (run,) = recommend(split, Given(scores), length, candidates="group", **options)
    assert run.groups.tolist() == split.item_groups[run.items].tolist()
    assert run.group_names == ("0", "1", "2", "3")
    targets = Targets(
        split.train,
        split.test,
        Ranking(relevant="one", candidates="group", threshold=4, nonrelevant=nonrelevant),
        seed,
        split.item_groups,
    ).drawn_for(np.arange(split.train.n_users, dtype=np.int32))
    pool = targets.pool(np.arange(split.train.n_users, dtype=np.int32))
    for user, item, place, size in zip(run.users, run.items, run.ranks, run.lengths, strict=True):
        alike = split.item_groups == split.item_groups[item]
        alone = _ranked(split, scores, user, {int(i) for i in np.flatnonzero(pool[user] & alike)} | {int(item)})
        expected = alone.index(item) + 1 if item in alone else 0
        most = 25 if length == "all" else length
        assert (place, size) == (expected if expected <= most else 0, min(len(alone), most))


def test_lists_for_one_relevant_item_know_its_group_and_others_have_none():
    split = _grouped(0)
    (one,), (whole,) = recommend(split, "popularity", relevant="one", threshold=4), recommend(split, "popularity")
    assert one.groups.tolist() == split.item_groups[one.items].tolist()
    assert whole.groups is None
    (plain,) = recommend(_world(0), "popularity", relevant="one", threshold=4)
    assert plain.groups is None
    np.testing.assert_array_equal(plain.ranks, one.ranks)
