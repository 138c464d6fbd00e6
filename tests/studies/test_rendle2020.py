"""The benchmark of neural collaborative filtering on a small world, against ranking by hand."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield.cli import main
from cranfield.recommenders import recommender
from cranfield.recommenders.epochs import EpochModel
from cranfield.studies import rendle2020, replicate
from cranfield.studies.rendle2020 import trainings, work

SIZES = ["MF, 8 factors", "MF, 16 factors"]
SYSTEMS_USED = ["popularity", "ease(l2=100)", "ease(l2=300)", "ials(factors=4, epochs=3)"]


@pytest.fixture(scope="module")
def world():
    return cf.simulate.world(users=60, items=90, ratings=1_200, seed=1, times=False).ratings


@pytest.fixture(scope="module")
def negatives(world):
    """Return a test item of each user but the last, and 30 items that she did not rate."""
    draw, rows = np.random.default_rng(0), []
    for user in range(world.n_users - 1):
        own = world.items[world.profile(user)]
        others = draw.permutation(np.setdiff1d(np.arange(world.n_items), own))[:30]
        ids = [world.item_ids.all[int(item)] for item in others]
        rows.append((world.user_ids.all[user], world.item_ids.all[int(own[0])], ids))
    return pl.DataFrame(rows, schema=["user", "item", "negatives"], orient="row")


def _replicate(world, out, **options):
    return replicate("rendle2020", world, out=out, **{"systems": SYSTEMS_USED, "figures": False, **options})


@pytest.fixture(scope="module")
def found(world, negatives, tmp_path_factory):
    return _replicate(world, tmp_path_factory.mktemp("ncf") / "out", negatives=negatives)


def _by_hand(world, negatives, spelling, among):
    """Return HR@10 and nDCG@10 of the test items, each ranked among some items by score; all scores differ."""
    users = world.user_ids.codes(negatives["user"])
    tests = world.item_ids.codes(negatives["item"])
    is_test = np.isin(world.users * world.n_items + world.items, users * world.n_items + tests)
    train = world.keep(~is_test)
    scores = recommender(spelling, 0).fit(train).score(np.arange(world.n_users))
    hits, gains = [], []
    for user, test, drawn in zip(users, tests, negatives["negatives"].to_list(), strict=True):
        seen = train.items[train.profile(user)]
        others = world.item_ids.codes(pl.Series(drawn)) if among == "sampled" else np.arange(world.n_items)
        others = np.setdiff1d(others, [*seen, test])
        better = np.count_nonzero(scores[user, others] > scores[user, test])
        rank = np.inf if np.isnan(scores[user, test]) else 1 + better  # a new user has no list
        hits.append(rank <= 10)
        gains.append(1 / np.log2(rank + 1) if rank <= 10 else 0)
    return np.mean(hits), np.mean(gains)


@pytest.mark.parametrize("protocol", ["sampled", "full"])
@pytest.mark.parametrize("spelling", SYSTEMS_USED[1:])
def test_both_protocols_give_what_ranking_by_hand_gives(found, world, negatives, protocol, spelling):
    row = spelling.replace("ease(l2=", "EASE, λ = ").rstrip(")") if "ease" in spelling else spelling
    own = found.exhibit("table-1").frame.filter(row=row, protocol=protocol)
    values = dict(own.select("metric", "value").iter_rows())
    hits, gains = _by_hand(world, negatives, spelling, protocol)
    assert values == pytest.approx({"HR@10": hits, "nDCG@10": gains})


def test_the_page_says_what_each_protocol_prefers(found):
    said = found.exhibit("table-2").table.notes[0]
    assert said.startswith("By nDCG@10 ")
    header = found.exhibit("table-1").table.header
    assert header[2:5] == ["HR@10, sampled", "printed", "HR@10, full"]
    pairs = found.exhibit("table-3").frame
    assert len(pairs) == 3  # one setting of EASE
    assert set(pairs["same"].unique()) <= {True, False}


def test_sampled_ranks_are_corrected_beside_what_the_full_catalogue_says(found, negatives):
    exhibit = found.exhibit("table-4")
    measured = found.exhibit("table-1").frame
    for line in exhibit.frame.iter_rows(named=True):
        for protocol in ("sampled", "full"):
            value = measured.filter(row=line["row"], metric=line["metric"], protocol=protocol)["value"].item()
            assert line[protocol] == pytest.approx(value)
        assert line["lower"] <= line["estimate"] <= line["upper"]
    inside = exhibit.frame["inside"].sum()
    assert inside >= len(exhibit.frame) - 1
    assert exhibit.table.notes[0].startswith(f"{inside} of {len(exhibit.frame)} intervals contain the value")


def test_nothing_is_printed_of_other_ratings(found):
    assert not any("printed" in claim.claim for claim in found.claims)


def test_a_study_goes_on_with_what_is_missing(world, negatives, tmp_path, monkeypatch):
    calls = []
    whole = work.fitted

    def counted(system, *arguments):
        calls.append(system.name)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(system, *arguments)

    monkeypatch.setattr(work, "fitted", counted)
    with pytest.raises(KeyboardInterrupt):
        _replicate(world, tmp_path / "out", negatives=negatives)
    again = _replicate(world, tmp_path / "out", negatives=negatives)
    assert len(calls) == 5
    assert again.exhibit("table-1").frame.height == 4 * 2 * 2
    _replicate(world, tmp_path / "out", negatives=negatives)
    assert len(calls) == 5


def test_the_systems_of_the_paper_are_trained_by_three_seeds_at_eight_factors():
    wanted = trainings(5)
    by_row = {row: [own.seed for own in wanted if own.row == row] for row in {own.row for own in wanted}}
    assert by_row["MF, 8 factors"] == by_row["NeuMF, 8 factors"] == [5, 6, 7]
    assert by_row["MF, 64 factors"] == by_row["NeuMF, 64 factors"] == by_row["SLIM"] == [5]
    assert all("epochs=2," in own.spelling for own in trainings(0, 2) if own.row.startswith(("MF", "NeuMF")))
    assert by_row["MF, 24 factors"] == by_row["MF, 192 factors"] == [5]
    for own in wanted:
        assert own.system().seed == own.seed if "factors" in own.row else own.system()


def test_rows_of_networks_are_named_with_the_remedy_where_the_libraries_are_missing(
    world, negatives, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "jax", None)
    study = _replicate(world, tmp_path / "out", negatives=negatives, systems=["popularity", "ease", "neumf(epochs=1)"])
    assert any(
        "neumf" in note and "pip install 'cranfield[neural]'" in note for note in study.exhibit("table-1").table.notes
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"item": ["no such"]}, "did not rate the test item no such"),
        ({"negatives": [[]]}, "a user, an item or a negative is missing"),
        ({"negatives": ["x"]}, "the negatives are not lists"),
        ({"user": None}, "the columns are item, negatives"),
    ],
)
def test_negatives_that_do_not_fit_are_refused_with_the_row(world, negatives, tmp_path, change, words):
    frame = negatives.head(1)
    for name, values in change.items():
        frame = frame.drop(name) if values is None else frame.with_columns(pl.Series(name, values))
    with pytest.raises(InputError, match=words):
        _replicate(world, tmp_path / "out", negatives=frame)


def test_a_negative_that_is_the_test_item_is_left_out_with_a_note(found, world, negatives, tmp_path):
    rows = [[*drawn, item] for item, drawn in negatives.select("item", "negatives").iter_rows()]
    doubled = negatives.with_columns(pl.Series("negatives", rows))
    study = _replicate(world, tmp_path / "out", negatives=doubled)
    assert study.exhibit("table-1").frame.equals(found.exhibit("table-1").frame)
    notes = study.exhibit("table-1").table.notes
    assert any(note.startswith("59 of the published negatives are the test item") for note in notes)


def test_a_rated_negative_and_two_test_items_are_refused(world, negatives, tmp_path):
    own = world.item_ids.all[int(world.items[world.profile(0)][1])]
    rated = negatives.head(1).with_columns(pl.Series("negatives", [[own]]))
    with pytest.raises(InputError, match="which is among the negatives"):
        _replicate(world, tmp_path / "out", negatives=rated)
    twice = pl.concat([negatives.head(1), rated.with_columns(pl.Series("item", [own]))])
    with pytest.raises(InputError, match="has 2 test items"):
        _replicate(world, tmp_path / "out", negatives=twice)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "needs the test item of each user"),
        ({"epochs": 2, "negatives": 1}, "give epochs or systems"),
        ({"threshold": 3, "negatives": 1}, "takes no threshold"),
        ({"systems": ["ease"], "negatives": 1}, "at least two"),
        ({"systems": None, "epochs": 0, "negatives": 1}, "epochs=0"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(world, negatives, tmp_path, options, words):
    options = {**options, **({"negatives": negatives} if "negatives" in options else {})}
    with pytest.raises(SettingError, match=words):
        _replicate(world, tmp_path / "out", **options)


@pytest.mark.slow
def test_the_command_takes_files_says_the_time_before_and_draws_the_sizes(
    world, negatives, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(EpochModel, "seconds_per_epoch", lambda *_: 30.0)
    world.frame().write_parquet(tmp_path / "ratings.parquet")
    negatives.explode("negatives").rename({"negatives": "negative"}).write_csv(tmp_path / "negatives.csv")
    arguments = ["--data", str(tmp_path / "ratings.parquet"), "--negatives", str(tmp_path / "negatives.csv")]
    systems = [part for own in trainings(0) if own.row in SIZES and not own.seed for part in ("-s", own.spelling)]
    main(["replicate", "rendle2020", *arguments, *systems, "--out", str(tmp_path / "out"), "--no-figures"])
    assert "Training by epochs will take about 4.3 h" in capsys.readouterr().err
    assert set(pl.read_csv(tmp_path / "out" / "figures" / "figure-01.csv")["factors"]) == {8, 16}
    with pytest.raises(SystemExit, match="2"):
        main(["replicate", "rendle2020", *arguments[:3], str(tmp_path / "absent"), "--out", str(tmp_path / "x")])
    assert "there is no such file" in capsys.readouterr().err


@pytest.mark.neural
def test_all_systems_of_the_paper_are_run(world, negatives, tmp_path, monkeypatch):
    monkeypatch.setattr(work, "SIZES", {"MF": (8,), "NeuMF": (8,)})
    monkeypatch.setattr(rendle2020, "_SEEDS", 1)
    study = _replicate(world, tmp_path / "out", negatives=negatives, systems=None, epochs=1)
    assert {own.row for own in trainings(0)} == set(study.exhibit("table-1").frame["row"])
    assert any("trained 1 epochs here" in note for note in study.exhibit("table-1").table.notes)
    assert any("MF, 8 factors, has a higher" in claim.claim for claim in study.claims)
