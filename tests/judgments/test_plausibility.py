from __future__ import annotations

import unicodedata

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield._errors import CranfieldWarning, InputError
from cranfield.facts import scores as scores_facts
from cranfield.facts import sentences
from cranfield.judgments import tallies
from cranfield.judgments.plausibility import differing_forms
from cranfield.tables import Vocabulary

USERS, ITEMS = range(100), range(40)
TEST = cf.Ratings.of(
    [user for user in USERS for _ in range(4)],
    [(user * 3 + place * 7) % 40 for user in USERS for place in range(4)],
    [1 + (user + place) % 5 for user in USERS for place in range(4)],
)
TRAIN = cf.Ratings.of(
    [user for user in USERS for _ in range(4)],
    [(user * 3 + place * 7 + 2) % 40 for user in USERS for place in range(4)],
)


def _run(step=1, user=int, item=int, length=10):
    """Return lists whose ids are written in some way."""
    return {user(u): [item((u * step + place) % 40) for place in range(length)] for u in USERS}


def _warnings(runs, test=TEST, **options):
    return tuple(sentences(cf.measure(runs, test, "P@5", threshold=4, **options).warnings))


def test_runs_of_the_test_set_have_no_warning():
    assert _warnings({"one": _run(), "two": _run(3)}) == ()


@pytest.mark.parametrize(
    ("user", "item", "form"),
    [
        (lambda u: f"{u:04d}", int, "leading zeros"),
        (lambda u: f"user_{u}", int, "a prefix"),
        (lambda u: f"{u}.0", int, "a decimal part"),
        (lambda u: f"{u} ", int, "surrounding spaces"),
        (int, lambda i: f"item-{i:05d}", "a prefix and leading zeros"),
    ],
)
def test_ids_that_are_written_otherwise_are_an_error_that_says_how(user, item, form):
    with pytest.raises(InputError, match=f"they differ by {form}"):
        _warnings({"mine": _run(user=user, item=item)})


@pytest.mark.parametrize("engine", ["memory", "ranges"])
@pytest.mark.parametrize("named", [0, 60])
def test_ids_in_other_unicode_normal_forms_are_diagnosed_as_that(engine, named, tmp_path):
    test = TEST.frame().with_columns(pl.format("Amélie {}", "user").alias("user"))
    test.write_parquet(tmp_path / "test.parquet")
    names = {u: f"Amélie {u}" if u < named else unicodedata.normalize("NFD", f"Amélie {u}") for u in USERS}
    lists = pl.DataFrame([(names[u], i) for u, items in _run().items() for i in items], ["user", "item"], orient="row")
    lists.write_parquet(tmp_path / "mine.parquet")
    files = [str(tmp_path / "mine.parquet")], str(tmp_path / "test.parquet")
    form = r"differ by Unicode normalisation \(é as one character or as two: write both in the form NFC\)"
    with pytest.raises(InputError, match=form):
        cf.measure(*files, "P@5", threshold=4, engine=engine, strict=True)


def test_a_run_of_other_users_is_an_error_with_three_ids_of_each_side():
    with pytest.raises(InputError, match="the run has 1000, 1001 and 1002, the test set 0, 1 and 2; give the run"):
        _warnings({"mine": _run(user=lambda u: 1000 + u)})


@pytest.mark.parametrize("length", [10, 3])
def test_users_and_items_in_each_others_column_are_said_although_their_ids_overlap(length):
    rows = [(user, item) for user, items in _run(length=length).items() for item in items]
    warning = "mine: its users seem to be the items of the test set, and its items the users"
    turned = {"mine": [(item, user) for user, item in rows]}
    assert _warnings(turned)[-1].startswith(warning)
    with pytest.raises(InputError, match="its users seem to be the items"):
        _warnings(turned, strict=True)
    test = cf.Ratings.of(TEST.item_ids.ids(TEST.items), TEST.user_ids.ids(TEST.users), TEST.values)
    assert _warnings({"mine": rows}, test)[-1].startswith(warning)


def test_users_and_items_with_the_same_ids_are_told_apart_by_the_lengths_of_lists():
    users = np.repeat(np.arange(100), 5)
    test = cf.Ratings.of(users, (users * 7 + np.tile(np.arange(5) ** 3, 100)) % 100)
    draw = np.random.default_rng(1)
    rows = [(user, int(item)) for user in range(100) for item in draw.permutation(100)[:20]]
    assert cf.measure({"mine": rows}, test, "P@5").warnings == ()
    turned = cf.measure({"mine": [(item, user) for user, item in rows]}, test, "P@5").warnings
    assert turned[0] == scores_facts.OfRuns(scores_facts.Suspicion("turned"), ("mine",), every=False)


def test_lists_of_the_whole_catalogue_in_swapped_columns_are_noticed_and_those_for_a_few_users_are_not():
    ratings = cf.simulate.world(users=150, items=60, ratings=3000, seed=1).ratings
    split = cf.splits.random(ratings)
    test, (run,) = split.test, cf.recommend(split, "popularity", length=45)
    rows = run.frame().select("user", "item", "score")
    assert cf.measure({"mine": rows}, test, "P@5").warnings == ()
    turned = cf.measure({"mine": rows.rename({"user": "item", "item": "user"})}, test, "P@5").warnings
    assert scores_facts.OfRuns(scores_facts.Suspicion("turned"), ("mine",), every=False) in turned
    few = rows.filter(pl.col("user") <= rows["user"].unique().sort()[9])
    assert cf.measure({"mine": few}, test, "P@5").warnings == ()


def test_items_that_the_training_set_knows_are_no_strangers():
    other = {"mine": {user: [f"new{user}"] for user in USERS}}
    with pytest.raises(InputError, match="no item of the run mine is in the test set"):
        _warnings(other)
    known = cf.Ratings.of(["x"] * 100, [f"new{user}" for user in USERS])
    assert _warnings(other, train=known) == ()


@pytest.mark.parametrize(("common", "n_warnings"), [(9, 1), (10, 0)])
def test_a_tenth_of_the_users_must_meet_or_the_verdict_has_a_warning(common, n_warnings):
    runs = {name: _run(step, user=lambda u: u if u < common else 1000 + u) for name, step in (("one", 1), ("two", 3))}
    scores = cf.measure(runs, TEST, "P@5", threshold=4)
    verdict = cf.compare(scores).verdict
    warning = "Warning: every run: the test set has only 9 of the 100 users"
    assert [place for place, text in enumerate(verdict, 1) if text.startswith(warning)] == [2] * n_warnings
    assert len(scores.warnings) == n_warnings


def test_a_run_for_more_or_fewer_users_than_the_test_set_has_is_not_suspicious():
    some = TEST.keep(TEST.users < 5)
    assert _warnings({"all": _run()}, some.compact()) == ()
    assert _warnings({"few": {user: items for user, items in _run().items() if user < 5}}) == ()


def test_a_few_ids_that_are_written_otherwise_are_a_warning():
    (warning,) = _warnings({"mine": _run(user=lambda u: f"{u:02d}")})
    assert "only 90 of the 100 users" in warning
    assert "the others of the run are '00', '01' and '02', those of the test set 0, 1 and 2" in warning
    assert "leading zeros" in warning


def test_the_training_set_as_test_set_leaves_no_hit_and_is_an_error():
    lists = {user: [item for item in ITEMS if item not in TRAIN.items[TRAIN.users == user]] for user in USERS}
    with pytest.raises(InputError, match="chance alone would find about 360; this happens if the training ratings"):
        _warnings({"mine": lists}, TRAIN)


def test_a_system_that_recommends_what_hardly_anybody_rated_may_have_no_hit():
    rare = {user: [1000 + 10 * user + place for place in range(10)] for user in USERS}
    missed = [item for item in ITEMS if item not in TEST.items[:4]]
    assert _warnings({"tail": {**rare, 0: missed}}) == ()


def test_one_run_of_several_without_a_hit_is_a_warning():
    misses = {user: [item for item in ITEMS if item not in TEST.items[TEST.users == user]] for user in USERS}
    (warning,) = _warnings({"misses": misses, "hits": _run()})
    assert warning.startswith("misses: no list holds any item that its user has rated in the test set")


def test_a_test_set_that_is_the_training_set_is_an_error_and_shared_ratings_are_a_warning():
    with pytest.raises(InputError, match="the test set is the training set"):
        _warnings({"mine": _run()}, train=TEST)
    both = cf.Ratings.of(
        np.append(TRAIN.users, TEST.users[:8]), np.append(TRAIN.items, TEST.items[:8]), np.ones(len(TRAIN) + 8)
    )
    (warning,) = (one for one in _warnings({"mine": _run()}, train=both) if "in the training set too" in one)
    assert warning.startswith("8 of 400 test ratings (2%) are in the training set too")


def test_training_items_in_lists_are_a_warning_unless_the_run_was_made_here():
    lists = {user: [*TRAIN.items[TRAIN.users == user].tolist(), TEST.items[4 * user]] for user in USERS}
    (warning,) = _warnings({"mine": lists}, train=TRAIN)
    assert warning.endswith("in the test set: 400 of 500 items of mine (80%)")
    split = cf.splits.random(cf.Ratings.of(TEST.users, TEST.items), train=0.5)
    made = cf.recommend(split, "popularity", keep_seen=True)
    assert not cf.measure(made, split.test, "P@5", train=split.train).warnings


def test_a_run_that_is_a_copy_of_the_test_set_is_a_warning():
    own = {user: TEST.users == user for user in USERS}
    lists = {user: dict(zip(TEST.items[mine].tolist(), TEST.values[mine].tolist())) for user, mine in own.items()}
    assert "as a copy of it would" in _warnings({"mine": lists})[0]
    assert _warnings({"condensed": {user: list(scores) for user, scores in lists.items()}}) == ()


def test_the_same_lists_under_several_names_are_a_warning_whatever_their_scores():
    one = {user: {item: -place for place, item in enumerate(items)} for user, items in _run().items()}
    runs = {"one": one, "two": _run(), "three": _run(3)}
    assert _warnings(runs) == ("one and two hold the same lists, as if one file were given under several names",)


@pytest.mark.parametrize("even", [True, False])
def test_scores_as_test_set_and_ratings_as_run_are_swapped(even):
    pairs = [(user, item) for user in USERS for item in _run()[user][: None if even or user else 3]]
    scores = cf.Ratings.of(*zip(*pairs), np.random.default_rng(0).random(len(pairs)) + 4)
    rated = {user: dict(zip(TEST.items[TEST.users == user].tolist(), [5.0, 4.0, 4.0, 5.0])) for user in USERS}
    if even:
        with pytest.raises(InputError, match="the test set and the run seem to be swapped"):
            _warnings({"mine": rated}, scores)
    else:
        assert "seem to be swapped" in _warnings({"mine": rated}, scores)[0]


def test_scores_that_count_down_are_not_ratings():
    pairs = [(user, item) for user in USERS for item in _run()[user]]
    real = cf.Ratings.of(*zip(*pairs), np.random.default_rng(0).random(len(pairs)) + 4)
    countdown = {user: {item: 10 - place for place, item in enumerate(items)} for user, items in _run(3).items()}
    assert _warnings({"mine": countdown}, real) == ()


def test_an_empty_run_is_a_warning():
    assert _warnings({"mine": {user: {0: np.nan} for user in USERS}}) == ("mine: every list is empty, and scores 0",)


def test_strict_makes_every_warning_an_error():
    runs = {"one": _run(), "two": _run()}
    for function in (cf.measure, cf.compare_tools, cf.assess):
        with pytest.raises(InputError, match=r"one and two hold the same lists.*; fix it, or leave strict=True"):
            function(runs, TEST, ["P@5"], threshold=4, strict=True)


def test_dialects_warn_since_a_frame_has_no_notes():
    with pytest.warns(CranfieldWarning, match="one and two hold the same lists"):
        cf.compare_tools({"one": _run(), "two": _run()}, TEST, "P@5", threshold=4)


def test_lists_without_training_ratings_are_joined_only_once(monkeypatch):
    monkeypatch.setattr(tallies, "count_hits", None)
    assert _warnings({"one": _run()}) == ()


def test_runs_that_were_made_of_a_file_are_not_that_file(tmp_path):
    path = tmp_path / "ratings.csv"
    cf.write(TEST, path)
    split = cf.splits.random(cf.read(path), train=0.5)
    runs = cf.recommend(split, ["popularity"], length=10)
    assert cf.measure(runs, split.test, "P@5", train=split.train).warnings == ()


@pytest.mark.parametrize("swapped", [False, True])
def test_ranges_of_users_are_checked_as_everything_at_once(swapped, tmp_path):
    names = {"user": "item", "item": "user"} if swapped else {"user": "user", "item": "item"}
    TEST.frame().write_parquet(tmp_path / "test.parquet")
    for name in ("one", "two"):
        rows = [(user, item, -float(place)) for user, items in _run().items() for place, item in enumerate(items)]
        lists = pl.DataFrame(rows, ["user", "item", "score"], orient="row").rename(names)
        lists.write_parquet(tmp_path / f"{name}.parquet")
    files = [str(tmp_path / "one.parquet"), str(tmp_path / "two.parquet")], str(tmp_path / "test.parquet")
    memory, ranges = (
        cf.measure(*files, "P@5", threshold=4, train=TRAIN, engine=engine).warnings for engine in ("memory", "ranges")
    )
    assert memory == ranges
    turned = scores_facts.OfRuns(scores_facts.Suspicion("turned"), ("one", "two"), every=True)
    assert (turned in memory) == swapped
    assert memory[-1] == scores_facts.SameLists(("one", "two"))


def test_ids_may_be_written_differently():
    numbers = Vocabulary.of([7, 8, 9])
    assert differing_forms(Vocabulary.of(["007", "008"]), numbers) == ("leading zeros",)
    assert differing_forms(Vocabulary.of(["ann", "bob"]), numbers) == ()


def test_counts_by_id_add_up():
    x, y = (tallies.IdCounts(Vocabulary.of(ids), np.array([[1, 2]])) for ids in (["a", "b"], ["b", "c"]))
    assert ((x + y).ids.all.to_list(), (x + y).counts.tolist()) == (["a", "b", "c"], [[1, 3, 2]])
    assert (x + x).counts.tolist() == [[2, 4]]
