"""Studies on several sets of ratings and in several repetitions."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from scipy.stats import kendalltau

from cranfield import SettingError, simulate
from cranfield.studies import replicate

SMALL = {
    "folds": 2,
    "systems": ["random", "popularity", "average"],
    "samples": 2,
    "sizes": [0.5],
    "figures": False,
}


@pytest.fixture(scope="module")
def worlds():
    sizes = {"first": (50, 40, 900), "second": (40, 30, 600)}
    return [
        replace(simulate.world(users=users, items=items, ratings=ratings, seed=place).ratings, name=name)
        for place, (name, (users, items, ratings)) in enumerate(sizes.items())
    ]


@pytest.fixture(scope="module")
def on_two(worlds, tmp_path_factory):
    """The study of 2020 on two worlds, twice on each."""
    return replicate("valcarce2020", worlds, out=tmp_path_factory.mktemp("two") / "out", repetitions=2, **SMALL)


def _part(replication, panel, repetition):
    return replication.folder / f"panel-{panel}" / f"repetition-{repetition}"


def test_every_part_is_the_study_on_that_data_with_its_seed(on_two, worlds, tmp_path):
    alone = replicate("valcarce2020", worlds[1], out=tmp_path / "out", seed=1, **SMALL)
    part = _part(on_two, 2, 2)
    for table in ("table-3", "systems", "robustness"):
        own = (part / "tables" / f"{table}.csv").read_text()
        assert own == (alone.folder / "tables" / f"{table}.csv").read_text()
    assert json.loads((part / "claims.json").read_text()) == json.loads((alone.folder / "claims.json").read_text())


def test_tables_are_joined_and_printed_rows_stand_once(on_two):
    table = on_two.exhibit("table-3").table
    assert table.header[:3] == ["Data", "Repetition", "Dataset"]
    names = [row[2] for row in table.rows]
    assert names.count("LibraryThing") == 1
    assert [(row[0], row[1]) for row in table.rows if str(row[2]).startswith("this run")] == [
        ("first", "1"), ("first", "2"), ("second", "1"), ("second", "2"),
    ]  # fmt: skip
    frame = on_two.exhibit("systems").frame
    assert frame.select("data", "repetition").unique().height == 4
    assert len(frame) == 4 * len(SMALL["systems"])


def test_the_total_adds_the_means_of_the_datasets(on_two):
    here = {}
    for row in on_two.exhibit("table-3").frame.iter_rows(named=True):
        if row["dataset"].startswith("this run"):
            here.setdefault((row["data"], row["metric"]), []).append(row["dp"])
    total = on_two.exhibit("power-total").frame.filter(dataset="Total")
    for metric, dp in total.select("metric", "dp").iter_rows():
        assert dp == pytest.approx(sum(sum(here[data, metric]) / 2 for data in ("first", "second")))


def test_other_folds_are_compared_by_their_discriminative_power(on_two):
    frame = on_two.exhibit("table-3").frame.filter(data="first")
    powers = [
        dict(frame.filter(dataset="this run: first", repetition=number).select("metric", "dp").iter_rows())
        for number in (1, 2)
    ]
    spread = on_two.exhibit("power-repetitions").frame.filter(dataset="first")
    assert spread["tau"][0] == pytest.approx(kendalltau(*(list(power.values()) for power in powers)).statistic)
    for row in spread.iter_rows(named=True):
        values = [power[row["metric"]] for power in powers]
        assert (row["lowest"], row["highest"]) == (min(values), max(values))


def test_claims_name_the_data_and_count_repetitions(on_two):
    claims = on_two.frame()
    assert {claim.split(":")[0] for claim in claims["claim"]} == {"first", "second"}
    assert claims["splits"].unique().to_list() == [4]  # two folds in each of two repetitions
    assert "on first, second" in on_two.sentence()
    assert (on_two.folder / "report.html").exists()


def test_a_second_run_keeps_every_part(worlds, on_two):
    before = {number: (_part(on_two, 1, number) / "log.jsonl").read_text().count('"made"') for number in (1, 2)}
    again = replicate("valcarce2020", worlds, out=on_two.folder, repetitions=2, **SMALL)
    assert before == {n: (_part(again, 1, n) / "log.jsonl").read_text().count('"made"') for n in (1, 2)}
    assert again.frame().equals(on_two.frame())


def test_what_cannot_be_meant_is_refused(worlds, tmp_path):
    with pytest.raises(SettingError, match="a split belongs to one set of ratings, but 2 are given"):
        replicate("valcarce2018", worlds, out=tmp_path / "a", split=worlds[0])
    with pytest.raises(SettingError, match="repetitions=0 "):
        replicate("valcarce2018", worlds[0], out=tmp_path / "b", repetitions=0)
    with pytest.raises(SettingError, match="2 sets of ratings need as many sets of known ratings, but 1 are given"):
        replicate("canamares-castells2018", worlds, out=tmp_path / "c", known=worlds[0])
    with pytest.raises(SettingError, match="valcarce2018 takes no targets"):
        replicate("valcarce2018", worlds, out=tmp_path / "d", targets=5)
    assert not any(tmp_path.iterdir())
