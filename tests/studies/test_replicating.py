"""Studies that are run again: what they write, what they keep, what they refuse."""

from __future__ import annotations

import json

import polars as pl
import pytest

from cranfield import CranfieldError, SettingError
from cranfield._errors import CranfieldWarning
from cranfield.measures import measure
from cranfield.rankings import recommend
from cranfield.splits import k_fold, per_user
from cranfield.store.store import Store
from cranfield.studies import replicate
from cranfield.studies.valcarce import PAPER_2018, PAPER_2020
from cranfield.studies.valcarce.exhibits import arithmetic
from cranfield.studies.valcarce.work import SYSTEMS

pytestmark = pytest.mark.usefixtures("undrawn")


def _log(folder):
    """Return what was made and kept."""
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [entry for entry in entries if entry["did"] in ("made", "kept")]


def test_every_table_is_written_in_three_formats_and_every_figure_has_its_numbers(of_2018, of_2020):
    for found, figures in ((of_2018, range(1, 9)), (of_2020, range(1, 15))):
        for table in ("table-2", "table-3"):
            for ending in ("csv", "md", "tex"):
                assert (found.folder / "tables" / f"{table}.{ending}").read_text().strip()
        names = {int(path.stem.split("-")[1]) for path in (found.folder / "figures").glob("figure-*.csv")}
        assert names == set(figures)


def test_figures_are_drawn_in_three_formats_and_stand_in_the_page(of_2018):
    for number in range(1, 9):
        for ending, start in (("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
            assert (of_2018.folder / "figures" / f"figure-{number}.{ending}").read_bytes().startswith(start)
    page = (of_2018.folder / "report.html").read_text()
    assert all(f'id="figure-figure-{number}"' in page for number in range(1, 9))
    assert "figures/figure-8.svg" in (of_2018.folder / "report.md").read_text()


def test_the_page_holds_every_table_and_claim(of_2020):
    page = (of_2020.folder / "report.html").read_text()
    assert all(one.claim in page for one in of_2020.claims)
    assert "Table 3: discriminative power" in page
    assert "<svg" not in page


def test_claims_are_written_with_their_rule_and_evidence(of_2020):
    told = json.loads((of_2020.folder / "claims.json").read_text())
    assert "95%" in told["rule"]
    assert [one["claim"] for one in told["claims"]] == of_2020.frame()["claim"].to_list()
    assert all(one["evidence"] for one in told["claims"])
    assert "| Claim |" in (of_2020.folder / "claims.md").read_text()


def test_the_values_are_those_of_measuring_each_fold(of_2020, small):
    splits = k_fold(small, k=2, seed=0)
    for fold, split in enumerate(splits):
        runs = recommend(split, list(of_2020.assessment.systems), 100, candidates="test", seed=0)
        scores = measure(runs, split.test, list(of_2020.assessment.metrics), threshold=4)
        expected = scores.average("mean", undefined="zero")
        assert pytest.approx(expected, abs=1e-12) == of_2020.assessment.whole[fold, 0].T


def test_a_second_run_keeps_all_that_was_made_and_gives_the_same(run_again, of_2020):
    before = len(_log(of_2020.folder))
    again = run_again("valcarce2020", of_2020.folder)
    after = _log(of_2020.folder)[before:]
    assert after
    assert {one["did"] for one in after} == {"kept"}
    assert again.frame().equals(of_2020.frame())
    assert again.exhibit("table-3").frame.equals(of_2020.exhibit("table-3").frame)


def test_another_number_of_samples_keeps_the_lists(run_again, tmp_path):
    options = {"systems": ["random", "popularity"], "sizes": [1, 0.5]}
    run_again("valcarce2020", tmp_path / "out", **options)
    before = len(_log(tmp_path / "out"))
    run_again("valcarce2020", tmp_path / "out", **options, samples=4)
    did = {one["artifact"].split("/")[0]: one["did"] for one in _log(tmp_path / "out")[before:]}
    assert did == {"runs": "kept", "scores": "kept", "samples": "made", "power": "kept"}


def test_an_interrupted_study_goes_on_where_it_stopped(run_again, tmp_path, monkeypatch):
    from cranfield.studies.valcarce import work

    options = {"systems": ["random", "popularity"], "sizes": [1, 0.5]}

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(work.assessments, "Chunks", stopped)
        with pytest.raises(KeyboardInterrupt):
            run_again("valcarce2020", tmp_path / "out", **options)
    before = len(_log(tmp_path / "out"))
    found = run_again("valcarce2020", tmp_path / "out", **options)
    of_first = [one for one in _log(tmp_path / "out")[before:] if "fold-1" in one["artifact"]]
    assert {one["artifact"]: one["did"] for one in of_first} == {
        "runs/fold-1/random": "kept",
        "runs/fold-1/popularity": "kept",
        "scores/fold-1": "kept",
        **{f"samples/fold-1/{scenario}": "made" for scenario in ("ratings", "items", "popular", "users", "large")},
    }
    assert found.exhibit("table-3").frame.height


def test_systems_are_trained_as_many_at_a_time_as_asked_with_the_same_result(run_again, tmp_path, monkeypatch):
    from cranfield.studies.valcarce import work

    options, jobs = {"systems": ["random", "popularity"], "sizes": [0.5], "samples": 1, "folds": 1}, []

    def backwards(*given, **asked):
        jobs.append(asked["jobs"])
        return reversed(list(timed_each(*given, **{**asked, "jobs": 1})))

    timed_each = work.timed_each
    one = run_again("valcarce2018", tmp_path / "one", **options)
    monkeypatch.setattr(work, "timed_each", backwards)
    two = run_again("valcarce2018", tmp_path / "two", jobs=2, **options)
    assert jobs == [2]
    assert two.assessment.whole.tolist() == one.assessment.whole.tolist()


def test_a_damaged_list_is_made_again(run_again, tmp_path):
    options = {"systems": ["random", "popularity"], "sizes": [1, 0.5]}
    first = run_again("valcarce2020", tmp_path / "out", **options)
    exported = tmp_path / "out" / "runs" / "fold-1" / "popularity.parquet"
    stored = Store(tmp_path / "out")
    key = stored.roots.current().artifacts["runs/fold-1/popularity"]
    whole = exported.read_bytes()
    for damaged in (exported, stored.place(key) / "run.parquet"):
        damaged.write_bytes(damaged.read_bytes()[:-10])
    before = len(_log(tmp_path / "out"))
    with pytest.warns(CranfieldWarning, match=r"is kept as popularity\.edited\.parquet"):
        again = run_again("valcarce2020", tmp_path / "out", **options)
    made = [one["artifact"] for one in _log(tmp_path / "out")[before:] if one["did"] == "made"]
    assert made == ["runs/fold-1/popularity"]
    assert exported.read_bytes() == whole
    assert again.frame().equals(first.frame())


def test_a_given_test_set_is_the_split_and_the_rest_is_training(run_again, small, tmp_path):
    split = per_user(small, train=0.8, seed=0)
    options = {"systems": ["popularity", "average"], "sizes": [1, 0.5], "folds": None}
    of_file = run_again("valcarce2018", tmp_path / "a", split=split.test, **options)
    by_itself = run_again("valcarce2018", tmp_path / "b", **options)
    assert of_file.assessment.whole == pytest.approx(by_itself.assessment.whole)
    assert len(of_file.assessment.whole) == 1


def test_folds_and_a_given_split_exclude_each_other(run_again, small):
    with pytest.raises(SettingError, match="exclude each other"):
        run_again("valcarce2018", split=small)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"systems": ["popularity"]}, "at least two"),
        ({"systems": ["popularity", "populartiy"]}, "populartiy"),
        ({"samples": 0}, "samples"),
        ({"sizes": []}, "sizes"),
        ({"sizes": [1]}, "below 1"),
        ({"threshold": "four"}, "threshold"),
        ({"threshold": 9}, "the highest is 5"),
    ],
)
def test_a_wrong_setting_is_told_before_any_work(run_again, tmp_path, options, told):
    with pytest.raises(CranfieldError, match=told):
        run_again("valcarce2020", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_an_unknown_study_is_told_with_the_nearest(small, tmp_path):
    with pytest.raises(SettingError, match="valcarce2018"):
        replicate("valcarce2081", small, out=tmp_path / "out")


def test_an_unknown_exhibit_is_told(of_2018):
    with pytest.raises(SettingError, match="table-4"):
        of_2018.exhibit("table-4")


def test_the_papers_have_21_systems_that_are_known():
    from cranfield.recommenders import recommender

    assert len(SYSTEMS) == 21
    assert all(recommender(system) for system in SYSTEMS)
    assert (PAPER_2018.folds, PAPER_2020.folds) == (1, 5)


def test_a_part_has_the_correlations_of_the_whole(of_2020):
    whole = of_2020.assessment
    assert arithmetic(whole).correlation() == pytest.approx(whole.correlation("mean"))
    power = dict(whole.power.filter(pl.col("average") == "mean").select("metric", "dp").iter_rows())
    assert dict(arithmetic(whole).power.select("metric", "dp").iter_rows())["MAP"] == power["AP@100"]
