"""The study of rank and rating error on a small world, against recommending and measuring by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield._figures import definition
from cranfield.data import with_features
from cranfield.rankings import Serving
from cranfield.rankings.decisions import measured_ratings
from cranfield.studies import replicate
from cranfield.studies.aftab2022 import work
from cranfield.studies.aftab2022.exhibits import reading
from cranfield.studies.aftab2022.work import BPR, LCNN, MF, NCF, models_for

SYSTEMS_USED = ["svd(factors=3, epochs=5)", "bprmf(factors=3, epochs=5)", "average"]
TABLES = {"ratings", "table-1", "table-2", "table-3", "models", "sdcse-beside-dcse", "figure-04-numbers", "times"}
FIGURES = {"table-1-curves", "figure-03-ratings", "figure-03-popular", "figure-04"}


@pytest.fixture(scope="module")
def world():
    return cf.simulate.world(users=60, items=40, ratings=1_500, seed=1).ratings


@pytest.fixture(scope="module")
def ten(world):
    """Return ratings from 2 to 10."""
    return replace(world, values=(2 * world.values).astype(np.float32), name="ten")


def _replicate(data, out, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "SIZES", (1.0, 0.5))
        patch.setattr(work, "POPULAR", (1.0, 0.9))
        options = {"seeds": 2, "samples": 2, "systems": SYSTEMS_USED, "figures": False, **options}
        return replicate("aftab2022", data, out=out, **options)


@pytest.fixture(scope="module")
def found(world, ten, tmp_path_factory):
    return _replicate([world, ten], tmp_path_factory.mktemp("aftab") / "out")


def _rows(found, version, **wanted):
    frame = pl.read_parquet(found.folder / "measured" / "panel-1" / version / "split-0.parquet")
    return frame.filter(pl.col(name) == value for name, value in wanted.items())


@pytest.mark.parametrize("version", ["explicit", "implicit"])
def test_the_numbers_are_those_of_recommending_and_measuring_by_hand(found, world, version):
    data = world if version == "explicit" else replace(world, values=(world.values >= 4).astype(np.float32))
    split = cf.splits.random(data, train=0.7, validation=0.1, seed=0)
    systems = dict(zip([MF, "BPR-MF", "item mean"], ["svd(factors=3, epochs=5)", *SYSTEMS_USED[1:]]))
    how = {"lists": "condensed", "calibration": "isotonic", "min_ratings": 1, "refit": False}
    runs = cf.recommend(split, systems, "all", **how)
    test = measured_ratings(split, Serving(min_ratings=1))
    names = {"MAP": "AP@10", "NDCG": "nDCG@10", "SDCSE": "SDCSE@10", "DCSE": "DCSE@10", "us": "UpSell@10"}
    scores = cf.measure(
        runs, test, list(names.values()), threshold=4 if version == "explicit" else 1, train=split.train
    )
    means = scores.average("mean", undefined="zero", coverage="reduced")
    for m, name in enumerate(names):
        values = dict(_rows(found, version, part="average", metric=name).select("system", "value").iter_rows())
        assert values == pytest.approx(dict(zip(scores.systems, means[:, m])))
    p = cf.compare(scores, correction="none", coverage="reduced", metrics=["SDCSE@10"]).rows["p"].to_list()
    assert _rows(found, version, part="pair", metric="SDCSE")["p"].to_list() == pytest.approx(p)


def test_power_is_the_sum_of_p_values_with_the_number_of_pairs(found):
    row = found.exhibit("table-1").frame.row(0, named=True)
    assert row["Pairs"] == "3"
    sums = [
        pl.read_parquet(path).filter(part="pair", metric="MAP", setting="explicit")["p"].sum()
        for path in sorted((found.folder / "measured" / "panel-1" / "explicit").glob("*.parquet"))
    ]
    assert float(row["MAP"]) == pytest.approx(np.mean(sums), abs=1e-4)


def test_us_ds_is_all_that_is_not_right_and_levels_are_those_of_the_scale(found):
    values = {name: _rows(found, "explicit", part="average", metric=name)["value"].to_numpy() for name in ("us", "ds")}
    shares = _rows(found, "explicit", part="average", metric="us-ds, half a step")["value"].to_numpy()
    np.testing.assert_allclose(shares, values["us"] + values["ds"])
    levels = _rows(found, "explicit", part="level").select("setting", "x").unique(maintain_order=True).rows()
    assert levels == [("Low-High", 1.0), ("Medium-High", 3.0), ("High", 4.0)]


def test_each_set_of_ratings_has_its_own_threshold_and_says_what_is_missing(found):
    assert found.step.settings["liked from"] == [4.0, 8.0]
    assert "MovieLens 25M" in found.step.settings["datasets of the paper not given"]
    assert {exhibit.name for exhibit in found.exhibits} == TABLES | FIGURES
    notes = found.exhibit("ratings").table.notes
    assert any("datasets of the paper that were not given" in note for note in notes)
    assert all(claim.claim.startswith(("simulated world: ", "ten: ")) for claim in found.claims)


def test_claims_about_models_that_were_not_run_cannot_be_told(found):
    unknown = {claim.claim.partition(": ")[2]: claim for claim in found.claims if np.isnan(claim.deciding.margin)}
    assert unknown["LC-NN migrates less than NCF (us-ds)"].support == "Table 2; –; 1 split, 3 systems"
    assert all(claim.verdict == "cannot tell" for claim in unknown.values())
    told = {claim.claim.partition(": ")[2]: claim for claim in found.claims}
    assert "DP over 3 pairs" in told["SDCSE is more discriminative than MAP and NDCG"].evidence


def test_a_lower_sdcse_is_traced_to_smaller_errors_or_a_worse_worst_case():
    assert reading({"DCSE": -0.1, "WDCSE": 0.3}) == "smaller errors"
    assert reading({"DCSE": 0.1, "WDCSE": 0.3}) == "only its worst case is worse"
    assert reading({"DCSE": 0.0, "WDCSE": 0.0}) == "the order of errors"


def test_every_figure_is_drawn(found):
    for name in FIGURES:
        assert "simulated world" in str(definition(found.exhibit(name).draw()))


def test_a_study_goes_on_with_the_models_that_are_missing(world, tmp_path, monkeypatch):
    calls = []
    whole = work.timed_each

    def counted(split, systems, **options):
        calls.extend(systems)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(split, systems, **options)

    monkeypatch.setattr(work, "timed_each", counted)
    with pytest.raises(KeyboardInterrupt):
        _replicate(world, tmp_path / "out", seeds=1)
    assert calls == [MF, "BPR-MF", "item mean"]
    _replicate(world, tmp_path / "out", seeds=1)
    assert calls[3:] == ["item mean", MF, "BPR-MF", "item mean"]  # the last three are for the implicit version
    _replicate(world, tmp_path / "out", seeds=1)
    assert len(calls) == 7


def test_a_model_that_fails_is_named_and_the_others_are_run(world, tmp_path):
    systems = ["svd(rate=10)", "average", "useraverage"]
    found = _replicate(world, tmp_path / "out", systems=systems, seeds=1)
    assert any("MF was not run: svd does not converge" in note for note in found.exhibit("ratings").table.notes)
    assert set(found.exhibit("models").frame["Model"]) == {"item mean", "useraverage"}
    with pytest.raises(
        InputError, match=r"fewer than two models could be run on simulated world .MF: svd does not converge"
    ):
        _replicate(world, tmp_path / "other", systems=["svd(rate=10)", "average"], seeds=1)


def test_models_that_cannot_be_run_are_named_with_the_reason(world, monkeypatch):
    monkeypatch.setattr("cranfield.studies.aftab2022.work.find_spec", lambda _: None)
    models = models_for(world, None, 7)
    assert models.spelled == {
        MF: "svd(seed=7)", "BPR-MF": "bprmf(factors=50, epochs=100, seed=7)", "item mean": "average",
    }  # fmt: skip
    assert "pip install 'cranfield[neural]'" in models.absent[BPR]
    assert {BPR, NCF, LCNN, "NCF, context", "LC-NN, context"} == set(models.absent)


@pytest.mark.parametrize(
    ("values", "threshold", "words"),
    [
        (
            lambda values: values * 0 + 4,
            None,
            "every rating of simulated world is 4, so there is no error to rank",
        ),
        (lambda values: values, 1.0, "threshold=1 makes all or none of simulated world liked"),
    ],
)
def test_ratings_that_cannot_be_studied_are_refused(world, tmp_path, values, threshold, words):
    with pytest.raises(SettingError, match=words):
        _replicate(replace(world, values=values(world.values)), tmp_path / "out", threshold=threshold)


def test_a_single_user_is_an_error_that_says_what_is_missing(tmp_path):
    data = cf.Ratings.of(["ann"] * 30, range(30), [1, 2, 3, 4, 5] * 6)
    with pytest.raises((InputError, SettingError), match=r"ratings|users|models"):
        _replicate(data, tmp_path / "out")


@pytest.mark.neural
def test_all_models_of_the_paper_are_run_with_and_without_context(world, tmp_path):
    ages = {"user": world.user_ids.all.to_list(), "age": [k % 7 * 10 for k in range(len(world.user_ids))]}
    known = with_features(world, user_features=pl.DataFrame(ages))
    found = _replicate(known, tmp_path / "out", systems=None, seeds=1, epochs=1)
    models = found.exhibit("models").frame["Model"].to_list()
    assert models == [MF, BPR, "BPR-MF", NCF, "NCF, context", LCNN, "LC-NN, context", "item mean"]
    assert found.exhibit("table-1").frame["Pairs"].to_list() == ["6"]
    assert "NCF = neumf(target=rating, epochs=1, seed=0)" in found.step.settings["models"]
    assert "NCF, context = neumf(target=rating, context=users, epochs=1, seed=0)" in found.step.settings["models"]
