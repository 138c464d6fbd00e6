"""Runs arrive in every shape that tools give them, and mean the same."""

from __future__ import annotations

import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cranfield import InputError, Ratings, Run, SettingError
from cranfield._record import record
from cranfield.facts.scores import ServedUsers
from cranfield.judgments import judge, read_judged, write_judged
from cranfield.rankings import read_run, read_runs, write_run

FRAME = pl.DataFrame(
    {"user": ["u2", "u1", "u1", "u2"], "item": ["a", "b", "c", "d"], "score": [0.5, 1.0, 2.0, 0.75], "extra": [1] * 4}
)
LISTS = [("u1", "c", 1, 2.0), ("u1", "b", 2, 1.0), ("u2", "d", 1, 0.75), ("u2", "a", 2, 0.5)]


def _rows(run):
    return run.frame().rows()


def _ranking(run):
    return run.frame().select("user", "item").rows()


@pytest.mark.parametrize(
    "convert",
    [
        lambda frame: frame,
        lambda frame: frame.lazy(),
        lambda frame: frame.to_arrow(),
        lambda frame: frame.to_pandas(),
        lambda frame: frame.to_pandas().astype({"user": object, "item": object}),
        lambda frame: frame.to_pandas().astype({"user": "category"}),
        lambda frame: frame.to_pandas().set_index("user"),
        lambda frame: frame.to_pandas().set_index(["user", "item"]),
        lambda frame: duckdb.from_arrow(frame.to_arrow()),
        lambda frame: frame.cast({"score": pl.Float32}),
        lambda frame: frame.cast({"score": pl.String}),
        lambda frame: frame.to_pandas().astype({"score": object}),
    ],
)
def test_every_dataframe_gives_the_same_run(convert):
    run = read_run(convert(FRAME))
    assert _rows(run) == LISTS
    assert run.users.tolist() == [0, 1]
    assert run.name == "run"


@pytest.mark.parametrize(
    "lists",
    [
        {"u2": {"a": 0.5, "d": 0.75}, "u1": {"b": 1, "c": 2}},
        {"u2": [("a", 0.5), ("d", 0.75)], "u1": [["c", 2], ["b", 1]]},
        {"u2": (pair for pair in [("a", 0.5), ("d", 0.75)]), "u1": [("b", np.float32(1)), ("c", 2.0)]},
    ],
)
def test_dictionaries_with_scores_give_the_same_run(lists):
    assert _rows(read_run(lists)) == LISTS


def test_dictionaries_of_rankings_stay_in_their_order():
    run = read_run({"u2": ["d", "a"], "u1": np.array(["c", "b"])})
    assert _ranking(run) == [row[:2] for row in LISTS]
    assert run.scores is None


def test_an_empty_list_in_a_dictionary_is_a_list_of_length_zero():
    run = read_run({"u1": {}, "u2": {"a": 1.0}})
    assert run.list_lengths.tolist() == [0, 1]
    assert run.counts["empty_lists"] == 1
    assert len(read_run({"u1": {}})) == 1


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ("rectools", {"user": "user_id", "item": "item_id", "score": "score"}),
        ("lenskit", {"user": "user_id", "item": "item_id", "score": "score"}),
        ("recbole", {"user": "user_id:token", "item": "item_id:token", "score": "score:float"}),
        ("replay", {"user": "query_id", "item": "item_id", "score": "rating"}),
        ("recommenders", {"user": "userID", "item": "itemID", "score": "prediction"}),
        ("ranx", {"user": "q_id", "item": "doc_id", "score": "score"}),
        (None, {"user": "UserId", "item": "Item ID", "score": "Score"}),
    ],
)
def test_the_column_names_of_tools_are_known(tool, names):
    run = read_run(FRAME.rename(names), format=tool)
    assert _rows(run)[0][:2] == ("u1", "c")
    assert run.scores is not None
    assert run.history[-1].settings["format"] == "table"
    assert run.history[-1].settings["columns"]["user"] == names["user"]


def test_columns_can_be_named_or_numbered():
    odd = FRAME.rename({"user": "who", "item": "what", "score": "much"})
    assert _rows(read_run(odd, user="who", item="what", score="much")) == LISTS
    assert _rows(read_run(odd, user=1, item=2, score=3)) == LISTS


def test_a_column_that_is_not_there_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"no column 'usr'.*did you mean 'user'"):
        read_run(FRAME, user="usr")
    with pytest.raises(InputError, match="do not say which one is the user"):
        read_run(FRAME.select(pl.col("score"), pl.col("extra")))


def test_one_row_a_list_as_lenskit_and_spark_write_it():
    struct = pl.DataFrame(
        {
            "user_id": [7, 8, 9],
            "items": [[{"item_id": 3, "score": 0.5}, {"item_id": 4, "score": 1.0}], [], [{"item_id": 3, "score": 2.0}]],
        }
    )
    run = read_run(struct)
    assert run.history[-1].settings["format"] == "nested"
    assert _rows(run) == [(7, 4, 1, 1.0), (7, 3, 2, 0.5), (9, 3, 1, 2.0)]
    assert run.list_lengths.tolist() == [2, 0, 1]
    spark = pl.DataFrame({"user": [1], "recommendations": [[{"item": 5, "rating": 4.5}, {"item": 6, "rating": 4.0}]]})
    run = read_run(spark)
    assert _rows(run) == [(1, 5, 1, 4.5, 4.5), (1, 6, 2, 4.0, 4.0)]


@pytest.mark.parametrize("convert", [lambda frame: frame, lambda frame: frame.to_pandas()])
def test_one_row_a_list_with_items_and_scores_side_by_side(convert):
    frame = pl.DataFrame({"user": ["a", "b"], "items": [[1, 2], [3]], "scores": [[0.1, 0.2], [0.3]]})
    assert _rows(read_run(convert(frame))) == [("a", 2, 1, 0.2), ("a", 1, 2, 0.1), ("b", 3, 1, 0.3)]
    ragged = frame.with_columns(scores=pl.Series([[0.1], [0.3]]))
    with pytest.raises(InputError, match="row 1, column 'scores': the list has 1 entries, but the list of items has 2"):
        read_run(convert(ragged))


@pytest.mark.parametrize(
    "convert", [lambda frame: frame, lambda frame: frame.to_pandas(), lambda frame: frame.to_dict()]
)
@pytest.mark.parametrize("items", [[[1], [2], [], [3]], [[{"item": 1}], [{"item": 2}], [], [{"item": 3}]]])
def test_a_single_value_beside_lists_of_one_item_is_its_value(convert, items):
    frame = pl.DataFrame({"user": ["a", "a", "c", "b"], "item": items, "score": [0.1, 0.2, 0.9, 0.3]})
    expected = [("a", 2, 1, 0.2), ("a", 1, 2, 0.1), ("b", 3, 1, 0.3)]
    assert _rows(read_run(convert(frame))) == expected
    ranked = frame.select("user", "item", rank=pl.Series([2, 1, 1, 1]), prediction=pl.Series([4.5, 4.0, 3.5, 3.0]))
    run = read_run(convert(ranked))
    assert _rows(run) == [("a", 2, 1, 4.0), ("a", 1, 2, 4.5), ("b", 3, 1, 3.0)]
    assert run.predictions.tolist() == [4.0, 4.5, 3.0]


@pytest.mark.parametrize("role", ["score", "rank", "prediction"])
@pytest.mark.parametrize("items", [[[1], [2, 4]], [[{"item": 1}], [{"item": 2}, {"item": 4}]]])
def test_a_single_value_beside_a_list_of_several_items_is_refused(role, items):
    frame = pl.DataFrame({"user": ["a", "b"], "item": items, role: [1, 2]})
    problem = f"row 2, column '{role}': there is one {role} for a list of 2 items; give one for each item"
    with pytest.raises(InputError, match=problem):
        read_run(frame)


def test_ranks_order_the_lists_where_there_are_no_scores():
    frame = pl.DataFrame({"user": [1, 1, 1], "item": [5, 6, 7], "rank": [3, 1, 2]})
    assert _ranking(read_run(frame)) == [(1, 6), (1, 7), (1, 5)]
    no_scores = frame.with_columns(score=pl.lit(None, dtype=pl.Float64))
    assert _ranking(read_run(no_scores)) == [(1, 6), (1, 7), (1, 5)]


@pytest.mark.parametrize(
    ("ranks", "places"),
    [
        ([9, 12, 13], [9, 12, 13]),  # hits alone
        ([1, 1, 3], [1, 2, 3]),  # competition ranks
        ([1, 1, 2], [1, 2, 3]),  # dense ranks
        ([2, 2, 2], [2, 3, 4]),
        ([1, 1, 5], [1, 2, 5]),
        ([0, 1, 2], [1, 2, 3]),  # from 0
        ([0, 4, 4], [1, 5, 6]),
        ([5.0, 6.0, 7.0], [5, 6, 7]),
        (["3", "4", "5"], [3, 4, 5]),
    ],
)
def test_a_rank_is_a_place(ranks, places):
    frame = pl.DataFrame({"user": [1, 1, 1], "item": [7, 6, 5], "rank": ranks})
    run = read_run(frame, ties="input")
    assert run.frame()["rank"].to_list() == places
    assert run.list_lengths.tolist() == places[-1:]
    assert run.has_gaps == (places[-1] > 3)
    assert read_run(frame, ties="input", gaps="close").frame()["rank"].to_list() == [1, 2, 3]
    assert run.history[-1].settings["gaps"] == "keep"
    scored = read_run(frame.with_columns(score=pl.Series([3, 2, 1])))
    assert scored.frame()["rank"].to_list() == [1, 2, 3]


def test_ranks_count_from_0_if_any_list_of_the_source_has_a_0():
    rows = [("a", 1, 7, 0), ("a", 2, 7, 3), ("b", 1, 7, 2), ("b", 3, 8, 2), ("b", 3, 7, 1)]
    frame = pl.DataFrame(rows, schema=["system", "user", "item", "rank"], orient="row")
    first, second = read_runs(frame)
    assert first.frame()["rank"].to_list() == [1, 4]
    assert second.frame()["rank"].to_list() == [3, 2, 3]
    (alone,) = read_runs({"b": frame.filter(system="b").drop("system")})
    assert alone.frame()["rank"].to_list() == [2, 1, 2]


def test_a_repeated_item_leaves_its_place_and_repeated_rows_none():
    frame = pl.DataFrame({"user": [1] * 4, "item": [7, 8, 7, 9], "rank": [1, 2, 3, 4]})
    run = read_run(frame)
    assert run.frame().rows() == [(1, 7, 1), (1, 8, 2), (1, 9, 4)]
    assert (run.counts["duplicate_items"], run.counts["missing_ranks"], run.counts["lists_with_gaps"]) == (1, 1, 1)
    assert "1 ranks are missing, and count as places with an unknown item" in run.history[-1].notes
    twice = pl.concat([frame.filter(pl.col("rank") != 3)] * 2).with_columns(rank=pl.Series([1, 2, 3] * 2))
    assert not read_run(twice).has_gaps


def test_scores_win_over_ranks_and_their_disagreement_is_counted_and_said():
    frame = pl.DataFrame({"user": [1, 1, 2], "item": [5, 6, 7], "rank": [1, 2, 1], "score": [0.1, 0.2, 0.3]})
    run = read_run(frame)
    assert _ranking(run) == [(1, 6), (1, 5), (2, 7)]
    assert run.counts["rank_disagreements"] == 1
    assert any("have a different order by rank than by score" in note for note in run.history[-1].notes)


def test_predicted_ratings_are_kept_apart_from_scores():
    frame = pl.DataFrame({"user": [1, 1], "item": [5, 6], "score": [0.1, 0.2], "prediction": [4.5, 3.0]})
    run = read_run(frame)
    assert run.predictions.tolist() == [3.0, 4.5]
    assert run.scores.tolist() == [0.2, 0.1]


def test_a_predicted_rating_alone_orders_the_list_too():
    run = read_run(pl.DataFrame({"user": [1, 1], "item": [5, 6], "prediction": [3.0, 4.5]}))
    assert run.predictions.tolist() == run.scores.tolist() == [4.5, 3.0]


def test_duplicates_nan_and_infinite_scores_follow_their_rules():
    run = read_run(
        pl.DataFrame(
            {
                "user": ["u"] * 6 + ["v"],
                "item": ["a", "b", "a", "c", "d", "e", "a"],
                "score": [1.0, math.inf, 3.0, math.nan, -math.inf, None, math.nan],
            }
        )
    )
    assert _rows(run) == [("u", "b", 1, math.inf), ("u", "a", 2, 3.0), ("u", "d", 3, -math.inf)]
    assert run.counts == {
        "nan_scores": 3,
        "duplicate_items": 1,
        "tied_items": 0,
        "rank_disagreements": 0,
        "empty_lists": 1,
    }
    assert len(run.history[-1].notes) == 3


def test_ties_follow_the_chosen_rule():
    frame = pl.DataFrame({"user": [1] * 3, "item": [10, 9, 2], "score": [1.0] * 3})
    assert [item for _, item in _ranking(read_run(frame))] == [9, 2, 10]
    assert [item for _, item in _ranking(read_run(frame, ties="input"))] == [10, 9, 2]
    average = read_run(frame, ties="average")
    assert average.ties == "average"
    assert average.items.tolist() == read_run(frame).items.tolist()
    assert average.scores.tolist() == [1.0] * 3


def test_the_frame_may_change_afterwards():
    frame = pd.DataFrame({"user": [1, 1], "item": [1, 2], "score": [2.0, 1.0]})
    run = read_run(frame)
    frame.loc[0, "score"] = 9.0
    assert run.scores.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.clear(), "there are no rows"),
        ({}, "there are no lists"),
        (FRAME.with_columns(item=pl.Series(["a", None, "c", "d"])), "row 2, column 'item': the item is missing"),
        (FRAME.with_columns(user=pl.Series(["a", "b", "", "d"])), "row 3, column 'user': the user is missing"),
        (FRAME.with_columns(score=pl.Series(["1", "2", "x", "3"])), "row 3, column 'score': 'x' is not a number"),
        (pl.DataFrame({"user": [1], "item": [1], "rank": [None]}), "row 1, column 'rank': the rank is missing"),
        ({"u": {"a": "good"}}, "the score 'good' of item 'a' is not a number"),
        ({"u": "abc"}, "the list of user 'u' is 'abc'"),
        ({"u": {"a": 1.0}, "v": ["b"]}, "user 'v' has a plain list, but others have scores"),
        (
            {"u": {"a": 1.0}, 3: {"b": 1.0}},
            "the dictionary, column 'user': the ids are of several types; use ids of one type",
        ),
        ({("u", "v"): {"a": 1.0}}, "column 'user': .* cannot be an id; use numbers"),
        (pd.DataFrame({"user": ["a", 1], "item": [1, 2]}, dtype=object), "column 'user': .*one type"),
        (pd.DataFrame({"user": [{1: 2}], "item": [1]}), "column 'user': the ids cannot be read .*use numbers"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(frame, message):
    with pytest.raises(InputError, match=message) as caught:
        read_run(frame)
    assert "\n" not in str(caught.value)


def test_what_is_no_source_or_setting_is_refused():
    with pytest.raises(SettingError, match="a int cannot be read as a run"):
        read_run(3)
    with pytest.raises(SettingError, match="did you mean 'rectools'"):
        read_run(FRAME, format="rectool")
    with pytest.raises(SettingError, match="not a rule for ties"):
        read_run(FRAME, ties="random")
    with pytest.raises(SettingError, match="no tag"):
        read_run(FRAME, tag=True)


def test_several_runs_come_from_a_dictionary_of_sources_or_a_sequence():
    runs = read_runs({"a": FRAME, "b": {"u1": {"c": 1.0}}})
    assert [run.name for run in runs] == ["a", "b"]
    again = read_runs([runs[0], runs[1]])
    assert again == runs
    with pytest.raises(InputError, match="two systems are called 'run'"):
        read_runs([FRAME, FRAME])
    with pytest.raises(InputError, match="no runs"):
        read_runs([])


@pytest.mark.parametrize(
    "convert", [lambda frame: frame, lambda frame: frame.to_pandas(), lambda frame: frame.to_arrow()]
)
def test_a_frame_with_a_column_of_systems_holds_several_runs(convert):
    both = pl.concat([FRAME.with_columns(model=pl.lit("y")), FRAME.head(1).with_columns(model=pl.lit("x"))])
    runs = read_runs(convert(both))
    assert [(run.name, len(run.items)) for run in runs] == [("x", 1), ("y", 4)]
    assert _rows(runs[1]) == LISTS
    named = both.rename({"model": "who"})
    assert [run.name for run in read_runs(convert(named), system="who")] == ["x", "y"]


def test_a_table_of_several_systems_is_split_among_other_sources_as_well():
    both = pl.concat([FRAME.with_columns(model=pl.lit("y")), FRAME.head(1).with_columns(model=pl.lit("x"))])
    runs = read_runs([both, {"u1": ["c"]}])
    assert [(run.name, len(run.items)) for run in runs] == [("x", 1), ("y", 4), ("run", 1)]


def test_a_file_of_one_system_among_others_is_called_by_its_name(tmp_path):
    for name in ("small", "large"):
        FRAME.with_columns(model=pl.lit("knn")).write_csv(tmp_path / f"{name}.csv")
    assert [run.name for run in read_runs([tmp_path / "small.csv", tmp_path / "large.csv"])] == ["small", "large"]
    assert [run.name for run in read_runs(tmp_path / "small.csv")] == ["knn"]
    with pytest.raises(SettingError, match="no tag"):
        read_runs(tmp_path / "small.csv", tag=True)


@pytest.mark.parametrize("nothing", [None, ""])
def test_a_row_without_a_system_is_refused_and_not_left_out(tmp_path, nothing):
    frame = FRAME.with_columns(model=pl.Series(["x", "y", nothing, "y"]))
    with pytest.raises(InputError, match="row 3, column 'model': the system is missing"):
        read_runs(frame)
    frame.write_csv(tmp_path / "all.csv")
    with pytest.raises(InputError, match="row 4, column 'model': the system is missing"):
        read_runs(tmp_path / "all.csv")
    with pytest.raises(InputError, match="the system is missing"):
        read_runs(FRAME.with_columns(model=pl.lit(None, dtype=pl.String)))


def test_a_dictionary_of_columns_is_a_table_and_not_three_users():
    columns = FRAME.select("user", "item", "score").to_dict(as_series=False)
    assert _rows(read_run(columns)) == LISTS
    uneven = read_run({"user": ["a", "b"], "item": ["c"]})
    assert _ranking(uneven) == [("item", "c"), ("user", "a"), ("user", "b")]


def test_a_frame_without_a_column_of_systems_is_one_run():
    assert [run.name for run in read_runs(FRAME)] == ["run"]


def test_a_run_is_returned_as_it_is_or_renamed():
    run = read_run(FRAME)
    assert read_run(run) is run
    renamed = read_run(run, name="x")
    assert isinstance(renamed, Run)
    assert renamed.name == "x"


def test_a_list_of_tuples_is_read_by_its_shape():
    run = read_run([("u2", "a", 0.5), ("u1", "b", 1), ("u1", "c", 2), ("u2", "d", 0.75)])
    assert _rows(run) == LISTS
    assert run.history[-1].settings["format"] == "triples"
    with pytest.raises(InputError, match="the list, row 2: the tuple has 2 entries, but the first has 3"):
        read_run([("u", "a", 1.0), ("u", "b")])


@pytest.mark.parametrize("names", [range(6), [f"column_{place}" for place in range(1, 7)]])
def test_frames_read_without_a_header_are_known_by_their_shape(names):
    rows = [["u1", "Q0", "c", 1, 2.0, "t"], ["u1", "Q0", "b", 2, 1.0, "t"]]
    run = read_run(pd.DataFrame(rows, columns=names), tag=True)
    assert run.frame().rows() == LISTS[:2]
    assert run.name == "t"
    assert _rows(read_run(pd.DataFrame(rows)[[0, 2, 4]])) == LISTS[:2]


def test_a_collection_of_lenskit_is_read_through_arrow_with_its_empty_lists():
    class ItemListCollection:
        def to_arrow(self):
            return pa.table({"user_id": [1, 2], "items": [[{"item_id": 5, "score": 0.5}], []]})

    ItemListCollection.__module__ = "lenskit.data.collection"
    run = read_run(ItemListCollection())
    assert _rows(run) == [(1, 5, 1, 0.5)]
    assert run.list_lengths.tolist() == [1, 0]


def test_ids_keep_their_type():
    run = read_run(pa.table({"user": [3, 1], "item": ["b", "a"], "score": [1.0, 1.0]}))
    assert run.user_ids.dtype == pl.Int64
    assert run.item_ids.dtype == pl.String


@pytest.mark.parametrize(
    ("made_of", "made_for"),
    [
        ({}, None),
        ({"min_ratings": 1, "sample": "all"}, None),  # users without training ratings have no list in any case
        ({"min_ratings": 5, "sample": "all"}, ServedUsers(min_ratings=5)),
        ({"min_ratings": 0, "sample": 0.1}, ServedUsers(sample=0.1)),
        ({"min_ratings": "many", "sample": 20}, ServedUsers(sample=20)),  # a record may be edited
    ],
)
def test_a_record_says_which_users_lists_were_made_for(made_of, made_for, tmp_path):
    path = write_run(read_run(FRAME), tmp_path / "lists.csv")
    record(path, made_of)
    run = read_run(path)
    assert run.made_for == made_for
    test = Ratings.of(["u1"], ["b"])
    assert read_judged(write_judged(judge(run, test), tmp_path / "judged.npz"), test).ranked.made_for == made_for
