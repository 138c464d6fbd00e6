"""A rank is a place: what ranks leave out is a place with an unknown item, for every metric and on every route."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import cranfield as cf
from cranfield.biases import bias, estimate
from cranfield.cli import main
from cranfield.comparisons import tipping_points
from cranfield.judgments import read_judged, write_judged
from cranfield.metrics import known_metrics
from cranfield.rankings import read_run, write_run
from cranfield.rankings.lists import LAST_PLACE

RANKS = st.integers(1, 14) | st.integers(1, 300)
LISTS = st.dictionaries(
    st.integers(0, 5), st.lists(st.tuples(st.integers(0, 12), RANKS), min_size=1, max_size=9), min_size=1
)
PROFILES = st.dictionaries(st.integers(0, 5), st.dictionaries(st.integers(0, 12), st.integers(1, 5), min_size=1))
TRAIN = cf.Ratings.of([1, 2, 2, 3, 3, 3], [0, 0, 1, 0, 1, 12], [5, 4, 3, 2, 1, 5])


def places_of(entries):
    """Return the item, shared rank and prediction at each place, straight from the words of the documentation."""
    entries = sorted(entries, key=lambda entry: str(entry[0]), reverse=True)
    entries.sort(key=lambda entry: entry[1])
    placed, last = {}, 0
    for item, rank in entries:
        if item in (held for held, *_ in placed.values()):
            continue
        place = max(rank, last + 1)
        tied = last in placed and placed[last][2] == rank
        placed[place] = item, placed[last][1] if tied else place, rank
        last = place
    return {place: (item, shared) for place, (item, shared, _) in placed.items()}


def frames_of(lists, first=1):
    """Return a frame of ranks that leave places out, and one in which these have items that nobody knows."""
    given_rows, whole = [], []
    for user, entries in lists.items():
        predicted = {item: 1 + (item + user) % 5 for item, _ in entries}
        given_rows += [(user, item, rank - 1 + first, float(predicted[item])) for item, rank in entries]
        placed = places_of(entries)
        for place in range(1, max(placed) + 1):
            item, rank = placed.get(place, (1000 + 1000 * user + place, place))
            whole.append((user, item, rank, float(predicted[item]) if place in placed else None))
    schema = {"user": pl.Int64, "item": pl.Int64, "rank": pl.Int64, "prediction": pl.Float64}
    return tuple(pl.DataFrame(rows, schema=schema, orient="row") for rows in (given_rows, whole))


def ratings_of(lists, profiles):
    """Return test ratings, of which some are of users and items in the lists."""
    user, entries = next(iter(lists.items()))
    profiles = {**profiles, user: {**profiles.get(user, {}), entries[0][0]: 5}}
    rows = [(user, item, value) for user, profile in profiles.items() for item, value in profile.items()]
    return cf.Ratings.of(*(list(column) for column in zip(*rows)))


def spellings():
    for name, definition in known_metrics().items():
        if definition.family != "own":
            yield from {"none": [name], "required": [f"{name}@4"]}.get(definition.cutoff, [name, f"{name}@4"])


def similar(mine, theirs, *names):
    for name in ("values", "overall", "covered", "bounds", "filled", "recommended", "longest", *names):
        first, second = (getattr(scores, name) for scores in (mine, theirs))
        if first is not None:
            np.testing.assert_allclose(first, second, rtol=1e-11, atol=1e-12, err_msg=f"{name} {mine.metrics}")


@pytest.mark.parametrize("condensed", ["full", "condensed"])
@given(data=st.data(), ties=st.sampled_from(["trec_eval", "input", "average"]), first=st.integers(0, 1))
def test_a_rank_is_a_place_in_every_metric(data, ties, first, condensed):
    lists, profiles = data.draw(LISTS), data.draw(PROFILES)
    if ties == "input":
        lists = {
            user: sorted(entries, key=lambda entry: str(entry[0]), reverse=True) for user, entries in lists.items()
        }
    if first == 0:  # the smallest rank of the file must be 0
        lists[6] = [(0, 1)]
    gaps, whole = frames_of(lists, first)
    options = {
        "ties": ties, "train": TRAIN, "lists": condensed, "bounds": True, "threshold": 3, "catalogue": range(1000),
        "metrics": [*spellings(), "nDCG(gain=exp)@10", "EPC(relevant=true, discount=log)@4"],
    }  # fmt: skip
    test = ratings_of(lists, profiles)
    mine, theirs = (cf.measure({"a": frame}, test, **options) for frame in (gaps, whole))
    similar(mine, theirs)
    if condensed == "full":  # nobody knows whether an item that ranks leave out is unjudged or not in the catalogue
        np.testing.assert_allclose(mine.unjudged, theirs.unjudged + theirs.nonexistent, rtol=1e-11)
    missing = len(whole) - sum(len({item for item, _ in entries}) for entries in lists.values())
    assert mine.counts["a"].get("missing_ranks", 0) == missing
    assert any("each is a place with an unknown item" in note for note in map(str, mine.notes)) == bool(missing)


@given(lists=LISTS, profiles=PROFILES, n=st.integers(1, 20))
def test_loops_over_the_places_give_the_same_values(lists, profiles, n):
    test = ratings_of(lists, profiles)
    scores = cf.measure(
        {"a": frames_of(lists)[0]}, test, [f"{name}@{n}" for name in ("P", "RR", "AP", "AUC", "nDCG")], threshold=3
    )
    for u, user in enumerate(scores.user_ids.ids(scores.users)):
        grades = dict(test.frame().filter(user=user).select("item", "rating").iter_rows())
        placed = {place: item for place, (item, _) in places_of(lists.get(user, [])).items() if place <= n}
        hits = [place for place, item in placed.items() if grades.get(item, 0) >= 3]
        liked = sum(grade >= 3 for grade in grades.values())
        gained = sum(grades.get(item, 0) / math.log2(place + 1) for place, item in placed.items())
        best = sorted(grades.values(), reverse=True)[:n]
        length = min(max(places_of(lists[user])), n) if user in lists else 0
        others = length - len(hits)
        below = [others - (place - 1 - k) for k, place in enumerate(hits)]
        of_liked = [
            len(hits) / n,
            1 / hits[0] if hits else 0.0,
            sum((k + 1) / place for k, place in enumerate(hits)) / max(liked, 1),
            sum(below) / (liked * others) if liked * others else math.nan,
        ]
        expected = of_liked if liked else [math.nan] * 4
        expected.append(gained / sum(grade / math.log2(place + 2) for place, grade in enumerate(best)))
        np.testing.assert_allclose(scores.values[0, :, u], expected, rtol=1e-12, atol=1e-12)


@given(lists=LISTS, n=st.integers(2, 12))
def test_an_unknown_item_is_neither_new_nor_different_nor_counted(lists, n):
    test = ratings_of(lists, {})
    train_counts = {item: int(count) for item, count in zip(TRAIN.item_ids.all, TRAIN.item_counts)}
    for similarity in (lambda first, second: np.asarray(first + second) % 2 / 2, None):
        metrics = [f"{name}@{n}" for name in ("EPC", "EPC(discount=log)", "ILD", "AggregateDiversity")]
        scores = cf.measure({"a": frames_of(lists)[0]}, test, metrics, train=TRAIN, similarity=similarity)
        [user] = test.user_ids.all
        placed = {place: item for place, (item, _) in places_of(lists[user]).items() if place <= n}
        length = min(max(places_of(lists[user])), n)
        new = {place: 1 - train_counts.get(item, 0) / 3 for place, item in placed.items()}
        weights = {place: 1 / math.log2(place + 1) for place in range(1, length + 1)}
        expected = [
            sum(new.values()) / length,
            sum(new[place] * weights[place] for place in new) / sum(weights.values()),
        ]
        np.testing.assert_allclose(scores.values[0, :2, 0], expected, rtol=1e-12)
        assert scores.overall[0, 3] == len(set(placed.values()))
        if similarity is not None and length > 1:
            items = list(placed.values())
            apart = [1 - (a + b) % 2 / 2 for k, a in enumerate(items) for b in items[k + 1 :]]
            assert scores.values[0, 2, 0] == pytest.approx(sum(apart) / (length * (length - 1) / 2))


METRICS = ["P@5", "AP", "nDCG@10", "RR", "ILD@4", "EPC@5", "Gini@3", "Unjudged@4", "FullRank@2", "RMSE"]


def world(seed, first=1, users=24):
    """Return ranks of two systems, of which b leaves places out, and test ratings."""
    random = np.random.default_rng(seed)
    rows = []
    for system in ("a", "b"):
        for user in random.permutation(users)[:-3]:
            steps = random.integers(0, 4, 6) if system == "b" else random.integers(0, 2, 6)
            ranks = np.cumsum(steps) + first
            rows += [(system, int(user), int(i), int(r)) for i, r in zip(random.integers(0, 20, 6), ranks)]
    rows.append(("a", 0, 7, first))
    test = [(user, int(i), float(random.integers(1, 6))) for user in range(users) for i in random.permutation(20)[:4]]
    runs = pl.DataFrame(rows, schema=["system", "user", "item", "rank"], orient="row")
    runs = runs.with_columns(prediction=pl.col("item") % 5 + 1.0)
    return runs, pl.DataFrame(test, schema=["user", "item", "rating"], orient="row")


@pytest.fixture
def small_ranges(monkeypatch):
    for name, value in (("_LARGEST_RANGE", 4000), ("_SMALLEST_RANGE", 1), ("_READING", 0)):
        monkeypatch.setattr(f"cranfield.measures.ranged.{name}", value)
    monkeypatch.setattr("cranfield.tables.frames.BATCH", 30)


def _layouts(runs):
    """Return the same lists in other layouts."""
    a = runs.filter(system="b").drop("system")
    cells = a.group_by("user", maintain_order=True).agg("item", "rank", "prediction")
    structs = a.group_by("user", maintain_order=True).agg(items=pl.struct("item", "rank", "prediction"))
    joined = cells.with_columns(pl.col("item", "rank", "prediction").cast(pl.List(pl.String)).list.join(" "))
    return {
        "table": a,
        "ranks as text": a.cast({"rank": pl.String}),
        "scores without a number": a.with_columns(score=pl.lit(None, dtype=pl.Float64)),
        "lists": cells,
        "structures": structs,
        "cells": joined,
    }


@pytest.mark.parametrize(
    ("first", "ties"),
    [
        (0, "trec_eval"),
        (1, "average"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, "trec_eval"), (0, "average"))),
    ],
)
def test_ranges_of_users_read_ranks_as_memory_does(tmp_path, small_ranges, first, ties):
    runs, test = world(first, first)
    test.write_parquet(tmp_path / "test.parquet")
    scores = []
    for name, frame in {"systems": runs, **_layouts(runs)}.items():
        path = str(tmp_path / f"{name}.parquet")
        frame.write_parquet(path)
        source = path if name == "systems" else {"b": path}
        options = {"ties": ties, "train": TRAIN, "catalogue": range(15), "bounds": True}
        mine, theirs = (
            cf.measure(source, str(tmp_path / "test.parquet"), METRICS, engine=engine, **options)
            for engine in ("ranges", "memory")
        )
        similar(mine, theirs, "nonexistent")
        assert mine.counts == theirs.counts
        assert mine.notes == theirs.notes
        assert any("missing in" in note for note in map(str, mine.notes))
        scores.append(mine.values[-1])
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], rtol=1e-13)


def test_what_orders_the_lists_is_decided_for_each_system_on_every_route(tmp_path, small_ranges):
    runs, test = world(3)
    scored = runs.with_columns(score=pl.when(system="a").then(-pl.col("rank").cast(pl.Float64)))
    scored = scored.with_columns(rank=pl.when(system="b").then("rank"))
    for name, frame in (("runs", scored), ("test", test), ("plain", runs)):
        frame.write_parquet(tmp_path / f"{name}.parquet")
    paths = [str(tmp_path / name) for name in ("runs.parquet", "test.parquet")]
    mine, theirs = (cf.measure(*paths, METRICS[:4], engine=engine) for engine in ("ranges", "memory"))
    similar(mine, theirs)
    assert mine.notes == theirs.notes
    assert mine.covered.all(axis=1).tolist() == [False, False]
    assert mine.covered.sum(axis=1).tolist() == [21, 21]
    plain = cf.measure(str(tmp_path / "plain.parquet"), paths[1], METRICS[:4])
    np.testing.assert_array_equal(mine.values[1], plain.values[1])


RUN = pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 5], "rank": [9, 12, 3]})
TEST = cf.Ratings.of([1, 2], [5, 5])


def test_hits_alone_do_not_score_as_if_they_were_first():
    kept, closed = (cf.measure({"hits": RUN}, TEST, ["RR", "P@10", "AP"], gaps=gaps) for gaps in ("keep", "close"))
    np.testing.assert_allclose(kept.values[0], [[1 / 9, 1 / 3], [0.1, 0.1], [1 / 9, 1 / 3]])
    np.testing.assert_allclose(closed.values[0], [[1, 1], [0.1, 0.1], [1, 1]])
    note = "hits: 12 ranks missing in 2 lists: each is a place with an unknown item; gaps=close leaves these places out"
    assert note in map(str, kept.notes)
    assert kept.counts["hits"]["missing_ranks"] == 12
    assert kept.counts["hits"]["lists_with_gaps"] == 2
    assert not any("missing" in note for note in map(str, closed.notes))
    assert kept.recommended.tolist() == [[15, 13, 15]]
    assert kept.unjudged[0, 0] == pytest.approx(13 / 15)


@pytest.mark.parametrize("route", ["frame", "run", "judged", "parquet", "csv", "columns"])
def test_every_route_can_close_the_gaps(tmp_path, route):
    RUN.write_parquet(tmp_path / "hits.parquet")
    RUN.write_csv(tmp_path / "hits.csv")
    source = {
        "frame": RUN, "run": read_run(RUN, name="hits"), "parquet": tmp_path / "hits.parquet",
        "csv": tmp_path / "hits.csv", "columns": RUN.to_dict(as_series=False), "judged": None,
    }[route]  # fmt: skip
    if route == "judged":
        judged = cf.judge(read_run(RUN, name="hits"), TEST)
        with pytest.raises(cf.SettingError, match="gaps was decided when these lists were judged"):
            cf.measure(judged, metrics="RR", gaps="close")
        assert cf.judge({"hits": RUN}, TEST, gaps="close").ranks.tolist() == [1, 1]
        return
    for gaps, expected in (("keep", (1 / 9 + 1 / 3) / 2), ("close", 1.0)):
        runs = {"hits": source} if route in ("frame", "columns") else source
        assert cf.measure(runs, TEST, "RR", gaps=gaps).average().item() == pytest.approx(expected)
    with pytest.raises(
        cf.SettingError, match="gaps='closed' is not a rule for gaps between ranks; did you mean 'close'"
    ):
        cf.measure({"hits": RUN}, TEST, "RR", gaps="closed")


@pytest.mark.parametrize("command", ["evaluate", "compare", "assess", "dialects"])
def test_commands_can_close_the_gaps(tmp_path, capsys, command):
    runs, test = world(5)
    test.write_parquet(tmp_path / "test.parquet")
    for name in ("a", "b"):
        runs.filter(system=name).select("user", "item", "rank").write_parquet(tmp_path / f"{name}.parquet")
    words = [command, "--test", "test.parquet", "a.parquet", "b.parquet", "-m", "RR", "--format", "json"]
    words = [str(tmp_path / word) if word.endswith("parquet") else word for word in words]
    shown = []
    for gaps in ([], ["--read-runs", "gaps=keep"], ["--read-runs", "gaps=close"]):
        main([*words, *gaps, *(["--samples", "2", "--scenario", "users"] if command == "assess" else [])])
        shown.append(json.loads(capsys.readouterr().out))
    assert shown[0] == shown[1]
    assert shown[0] != shown[2]


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
@pytest.mark.parametrize("ties", ["trec_eval", "average"])
@given(lists=LISTS, first=st.integers(0, 1))
def test_a_run_that_leaves_places_out_is_written_and_read_back(tmp_path_factory, ending, ties, lists, first):
    run = read_run(frames_of(lists, first)[0], name="run", ties=ties)
    path = write_run(run, tmp_path_factory.mktemp("run") / f"run.{ending}")
    for again in (read_run(path, ties=ties), read_run(run.frame(), name="run", ties=ties)):
        assert_frame_equal(again.frame(), run.frame())
        for name in ("indptr", "items", "entry_ranks", "list_lengths", "has_gaps", "made_scores"):
            np.testing.assert_array_equal(getattr(again, name), getattr(run, name), err_msg=name)
        if ties == "average":
            np.testing.assert_array_equal(again.tied_starts, run.tied_starts)


def test_a_trec_file_cannot_leave_places_out(tmp_path):
    with pytest.raises(cf.SettingError, match=r"incomplete and would be read back as complete ones; write \.parquet"):
        write_run(read_run(RUN), tmp_path / "hits.run")
    write_run(read_run(RUN, gaps="close"), tmp_path / "hits.run")


def test_judged_lists_are_saved_with_their_places(tmp_path):
    run = read_run(RUN, name="hits")
    path = write_judged(cf.judge(run, TEST), tmp_path / "hits.npz")
    for source in (run, lambda: run):
        judged = read_judged(path, TEST, source)
        scores = cf.measure(judged, metrics=["RR", "ItemCoverage@3", "Unjudged@9"])
        assert scores.values[0, 0].tolist() == [1 / 9, 1 / 3]
        assert scores.overall[0, 1] == 1.0
        assert scores.values[0, 2].tolist() == [8 / 9, 2 / 3]
        assert any("12 ranks missing in 2 lists" in note for note in map(str, scores.notes))


@pytest.mark.parametrize(
    ("rank", "shown"),
    [(1.5, "1.5"), (-1, "-1"), (1e12, "1000000000000"), (math.inf, "inf"), (LAST_PLACE + 1, "10000001")],
)
@pytest.mark.parametrize("engine", ["memory", "ranges"])
def test_a_rank_that_is_no_place_is_an_error_with_its_row_or_an_order(tmp_path, rank, shown, engine, small_ranges):
    frame = RUN.with_columns(rank=pl.Series([9.0, 12.0, rank]))
    for name, rows in (("runs", frame), ("scored", frame.with_columns(score=1.0)), ("test", TEST.frame())):
        rows.write_parquet(tmp_path / f"{name}.parquet")
    run, scored, test = (str(tmp_path / f"{name}.parquet") for name in ("runs", "scored", "test"))
    with pytest.raises(cf.InputError) as error:
        cf.measure(run, test, "RR", engine=engine)
    assert str(error.value) == (
        f"{run}, row 3, column 'rank': {shown} is not a place in a list, a whole number from 0 to 10,000,000; fix it, "
        "or take ranks only as an order with gaps='close'"
    )
    assert cf.measure(run, test, "RR", engine=engine, gaps="close").average().item() == 1.0
    assert cf.measure(scored, test, "HitRate@1", engine=engine).average().item() == 0.5


def test_the_last_place_takes_no_memory_of_its_size_for_a_cut_off():
    run = {"deep": RUN.with_columns(rank=pl.Series([9, LAST_PLACE, 3]))}
    scores = cf.measure(run, TEST, ["nDCG@10", "P@10"], bounds=True)
    assert scores.values[0, 1].tolist() == [0.1, 0.1]
    with pytest.raises(cf.SettingError, match="leave out too many places for bounds of whole lists"):
        cf.measure({"deep": RUN.with_columns(rank=LAST_PLACE)}, TEST, "RR", bounds=True)


def test_what_needs_every_item_of_a_list_says_so():
    runs, test = world(2)
    gaps = {name: read_run(runs.filter(system=name).drop("system"), name=name) for name in ("a", "b")}
    ratings = cf.read(test)
    train = cf.Ratings.of([0, 1, 2], [1, 2, 3])
    problem = "the ranks of b leave places out, and .* needs every item of a list; give whole lists, or close the gaps"
    with pytest.raises(cf.SettingError, match=problem):
        bias(runs=[gaps["b"]], test=ratings, train=train)
    with pytest.raises(cf.SettingError, match=problem):
        estimate([gaps["b"]], ratings, train=train)
    with pytest.raises(cf.SettingError, match=problem):
        tipping_points([gaps["a"].without_gaps(), gaps["b"]], ratings, "P@5")


def test_runs_with_the_same_items_at_other_places_are_not_the_same_lists(tmp_path, small_ranges):
    runs, test = world(4)
    later = runs.filter(system="b").with_columns(rank=pl.col("rank") * 2)
    for name, frame in (("b", runs.filter(system="b")), ("later", later), ("test", test)):
        frame.drop("system", strict=False).write_parquet(tmp_path / f"{name}.parquet")
    paths = [str(tmp_path / f"{name}.parquet") for name in ("b", "later")]
    for engine in ("memory", "ranges"):
        assert cf.measure(paths, str(tmp_path / "test.parquet"), "RR", engine=engine).warnings == ()


def test_shorter_ranks_of_a_list_never_come_after_longer_ones():
    run = read_run(RUN)
    assert all((np.diff(run.entry_ranks[start:stop]) > 0).all() for start, stop in pairwise(run.indptr))
    assert "9. 5, 12. 6</td>" in run._repr_html_().replace("\n", "")
