"""Items that do not exist are counted separately from unjudged ones."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield.cli import main
from cranfield.facts import sentences
from cranfield.judgments.context import Cataloguing, catalogue_ids

TEST = cf.Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"])
RUNS = {
    "real": {"ann": ["x", "w", "y"], "bob": ["w", "x"]},
    "made up": {"ann": ["x", "ghost", "w", "phantom"], "bob": ["ghost", "x"], "cid": ["ghost"]},
}


def _measured(**options):
    return cf.measure(RUNS, TEST, ["P@2", "AP"], catalogue=["x", "y", "w"], **options)


def test_each_share_is_that_of_the_recommendations_down_to_the_cut_off():
    scores = _measured()
    assert scores.nonexistent.tolist() == [[0, 0], [2 / 4, 3 / 6]]
    assert scores.unjudged == pytest.approx(np.array([[2 / 4, 2 / 5], [0, 1 / 6]]))
    whole = cf.measure(RUNS, TEST, ["P@2", "AP"])
    assert scores.unjudged + scores.nonexistent == pytest.approx(whole.unjudged)
    assert whole.nonexistent is None
    assert scores.average().tolist() == whole.average().tolist()


def test_the_table_the_frame_and_the_verdict_name_them():
    scores = _measured()
    assert "nonexistent in the whole list" in scores.table().header
    assert scores.frame()["nonexistent"].to_list() == [0, 0, 0.5, 0.5]
    sentence = (
        "made up recommends 2 items that are not in the catalogue, such as ghost, phantom: 3 of its 6 recommendations "
        "(50.0%), counted separately from unjudged ones"
    )
    assert sentence in sentences(scores.notes)
    assert any(sentence in said for said in cf.compare(scores).verdict)


@pytest.mark.parametrize("engine", ["memory", "ranges"])
def test_a_strict_measurement_refuses_them(engine, tmp_path):
    files = {name: tmp_path / f"{name.replace(' ', '-')}.parquet" for name in RUNS}
    for name, path in files.items():
        cf.write_run(cf.read_run(RUNS[name], name=name), path)
    cf.write(TEST, tmp_path / "test.parquet")

    def measured(name, **options):
        test = tmp_path / "test.parquet"
        return cf.measure(files[name], test, "P@2", catalogue=["x", "y", "w"], engine=engine, **options)

    assert measured("real", strict=True).warnings == ()
    assert len(measured("made up").warnings) == 1
    with pytest.raises(InputError, match="recommends 2 items that are not in the catalogue"):
        measured("made up", strict=True)


def test_an_item_with_a_test_rating_exists():
    scores = cf.measure(RUNS, TEST, "P@2", catalogue=["w"])
    assert scores.nonexistent.tolist() == [[0], [0.5]]


def test_condensed_lists_are_counted_as_they_were_given():
    assert _measured(lists="condensed").nonexistent.tolist() == [[0, 0], [2 / 4, 3 / 6]]
    assert _measured(lists="condensed").unjudged.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("kind", ["ratings", "set", "frame", "one column", "csv", "lines", "parquet", "train"])
def test_a_catalogue_may_be_anything_that_names_items(kind, tmp_path):
    items, options = ["w", "x", "y"], {}
    frame = pl.DataFrame({"title": ["a", "b", "c"], "item_id": items})
    if kind == "ratings":
        catalogue = cf.Ratings.of([1, 2, 3], items)
    elif kind == "set":
        catalogue = set(items)
    elif kind == "train":
        catalogue, options = "train", {"train": cf.Ratings.of([1, 2, 3], items)}
    elif kind in ("frame", "one column"):
        catalogue = frame if kind == "frame" else frame.select(pl.col("item_id").alias("whatever"))
    else:
        catalogue = tmp_path / f"catalogue.{kind}"
        if kind == "lines":
            catalogue.write_text("w\nx\n\ny\n")
        else:
            (frame.write_csv if kind == "csv" else frame.write_parquet)(catalogue)
    assert cf.measure(RUNS, TEST, "P@2", catalogue=catalogue, **options).nonexistent.tolist() == [[0], [0.5]]


@pytest.mark.parametrize(
    ("catalogue", "message"),
    [
        ("train", "catalogue='train' needs the training ratings"),
        (7, "catalogue=7 is not a catalogue"),
        (["x", 7], "ids of one type"),
        ([], "the catalogue holds no items"),
        (pl.DataFrame({"a": [1], "b": [2]}), "no column is known to hold the items"),
        ("nowhere.csv", "nowhere.csv"),
    ],
)
def test_a_catalogue_that_names_nothing_is_refused(catalogue, message):
    with pytest.raises((SettingError, InputError), match=message):
        cf.measure(RUNS, TEST, "P@2", catalogue=catalogue)


def test_the_command_line_takes_a_catalogue(tmp_path, capsys):
    TEST.frame().write_csv(tmp_path / "test.csv")
    for name, lists in RUNS.items():
        rows = [(user, item, 10 - rank) for user, items in lists.items() for rank, item in enumerate(items)]
        pl.DataFrame(rows, schema=["user", "item", "score"], orient="row").write_csv(tmp_path / f"{name}.csv")
    (tmp_path / "items.txt").write_text("w\nx\ny\n")
    runs = [str(tmp_path / f"{name}.csv") for name in RUNS]
    options = ["--test", str(tmp_path / "test.csv"), "-m", "P@2", "--catalogue", str(tmp_path / "items.txt")]
    main(["evaluate", *runs, *options])
    assert "nonexistent@2" in capsys.readouterr().out
    main(["compare", *runs, *options])
    assert "made up recommends 2 items that are not in the catalogue" in capsys.readouterr().out


def _brute_diversity(list_of_items, live, train, users, similarity):
    """Return EPC, EFD and ILD of one list by their definitions; a dead item keeps its place and earns nothing."""
    counts = {item: sum(other == item for _, other in train) for item in live}
    rarest = min(count for count in counts.values() if count)
    epc = [1 - counts[item] / users if item in live else 0.0 for item in list_of_items]
    efd = [-np.log2((counts[item] or rarest) / len(train)) if item in live else 0.0 for item in list_of_items]
    pairs = [(a, b) for k, a in enumerate(list_of_items) for b in list_of_items[k + 1 :]]
    ild = [1 - similarity(a, b) if {a, b} <= live else 0.0 for a, b in pairs]
    return [np.mean(epc), np.mean(efd), np.mean(ild) if ild else np.nan]


@pytest.mark.parametrize("seed", range(5))
def test_items_outside_the_catalogue_keep_their_places_and_earn_nothing(seed):
    rng = np.random.default_rng(seed)
    train = [(user, item) for user in range(6) for item in rng.permutation(12)[:4].tolist()]
    test = cf.Ratings.of([0, 1, 2, 3], rng.integers(0, 12, 4))
    lists = {user: rng.permutation(20)[: rng.integers(1, 9)].tolist() for user in range(4)}
    live = {*rng.permutation(12)[:8].tolist(), *test.frame()["item"].to_list()}
    similarity = lambda a, b: (a * b % 7) / 7  # noqa: E731
    scores = cf.measure(
        {"mine": lists},
        test,
        ["EPC", "EFD", "ILD", "AggregateDiversity", "ItemCoverage"],
        train=cf.read(train),
        catalogue=sorted(live),
        similarity=lambda a, b: (a * b % 7) / 7,
    )
    wanted = [_brute_diversity(lists[user], live, train, 6, similarity) for user in range(4)]
    np.testing.assert_allclose(scores.values[0, :3].T, wanted, rtol=1e-12, atol=1e-12)
    shown = {item for items in lists.values() for item in items} & live
    assert scores.overall[0, 3:].tolist() == pytest.approx([len(shown), len(shown) / len(live)])
    assert (scores.item_coverage[0], scores.catalogue) == (pytest.approx(len(shown) / len(live)), "the catalogue")


def test_large_floats_cannot_name_the_items_of_a_catalogue(tmp_path):
    frame = pl.DataFrame({"item": [1.0, 2.0**53]})
    frame.write_parquet(tmp_path / "items.parquet")
    for catalogue in (frame["item"].to_list(), frame, str(tmp_path / "items.parquet")):
        with pytest.raises(cf.InputError, match=r"row 2: 9007199254740992\.0 is a float of 2\^53 or more"):
            cf.measure({"mine": {1: [1]}}, cf.Ratings.of([1], [1]), "RR", catalogue=catalogue)


def test_groups_and_the_page_of_a_command_have_its_catalogue(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    for name in ("a", "b"):
        rows = [(user, int(item), -k) for user in range(8) for k, item in enumerate(rng.permutation(30)[:6])]
        pl.DataFrame(rows, schema=["user", "item", "score"], orient="row").write_csv(f"{name}.csv")
    for name, first in (("test", 0), ("train", 15)):
        rows = [(user, first + int(item)) for user in range(8) for item in rng.permutation(15)[:4]]
        pl.DataFrame(rows, schema=["user", "item"], orient="row").write_csv(f"{name}.csv")
    pl.DataFrame({"item": range(20)}).write_csv("items.csv")
    pl.DataFrame({"user": range(8), "group": ["x", "y"] * 4}).write_csv("groups.csv")
    pages = []
    monkeypatch.setattr("cranfield.reports.write_report", lambda scores, *_, **__: pages.append(scores))
    options = ["--test", "test.csv", "--train", "train.csv", "a.csv", "b.csv", "--catalogue", "items.csv"]
    options += ["-m", "EPC@4", "-m", "ILD@4"]
    main(["evaluate", *options, "--segment", "groups.csv:group", "--format", "json", "--report", "page.html"])
    rows = pl.DataFrame(json.loads(capsys.readouterr().out))
    of_groups = rows.filter(pl.col("group").is_not_null()).group_by("system", "metric", maintain_order=True)
    whole = rows.filter(pl.col("group").is_null())
    np.testing.assert_allclose(of_groups.agg(pl.col("mean").mean())["mean"], whole["mean"], rtol=1e-12)
    np.testing.assert_allclose(pages[0].frame()["mean"], whole["mean"], rtol=1e-12)


def test_a_catalogue_may_be_ids():
    assert catalogue_ids(["x", "y", "x"]).all.to_list() == ["x", "y"]
    assert (Cataloguing().catalogue, Cataloguing("items.csv").catalogue) == ("none", "items.csv")
