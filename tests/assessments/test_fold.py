"""Systems on smaller test sets: the order they keep, the verdicts that hold, and finished parts."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

import cranfield as cf
from cranfield._settings import settings
from cranfield.assessments import assess
from cranfield.assessments.fold import Chunks, Fold, correlations, flipped, verdicts
from cranfield.assessments.scenarios import SCENARIOS
from cranfield.judgments import Judgments

METRICS = ["P@10", "nDCG@10", "AP@10", "RR", "bpref", "infAP@10", "ERR@10"]
AVERAGES = [
    "mean", "geometric", "geometric(form=adjusted, epsilon=0.01)", "weighted(by=judged)", "weighted(by=relevant)",
    "median",
]  # fmt: skip


def _averages(scores):
    return {kind: scores.average(kind) for kind in AVERAGES}


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_agrees_with_a_loop_over_really_smaller_files(world, tmp_path, name):
    runs, test = world
    found = assess(
        runs, test, METRICS, threshold=4, scenarios=name, sizes=[0.4, 0.1], samples=3, seed=7,
        averages=AVERAGES, significance="t",
    )  # fmt: skip
    whole = _averages(cf.measure(runs, test, METRICS, threshold=4))
    judgments = Judgments.of(test, 4.0)
    rows = found.frame("samples")
    assert rows.height == 2 * SCENARIOS[name].n_samples(3) * len(AVERAGES) * len(METRICS)
    for (size, sample), part in rows.group_by("size", "sample"):
        mask = SCENARIOS[name].mask(judgments, size, sample, 7)
        test.frame().filter(pl.Series(mask)).write_csv(tmp_path / "smaller.csv")
        smaller = cf.measure(runs, cf.read(tmp_path / "smaller.csv"), METRICS, threshold=4)
        means = _averages(smaller)
        for row in part.iter_rows(named=True):
            m = METRICS.index(row["metric"])
            now, then = means[row["average"]][:, m], whole[row["average"]][:, m]
            np.testing.assert_allclose(row["values"], now, rtol=1e-9, atol=1e-12)
            expected = stats.kendalltau(then.round(12), now.round(12)).statistic
            assert row["tau"] == pytest.approx(expected, abs=1e-12, nan_ok=True)
            assert (row["ratings"], row["users"]) == (mask.sum(), smaller.n_lists)


def test_the_whole_test_set_gives_what_measure_gives_and_nothing_flips(world):
    runs, test = world
    found = assess(runs, test, METRICS, threshold=4, scenarios="ratings", sizes=[1])
    np.testing.assert_allclose(found.whole[0, 0].T, cf.measure(runs, test, METRICS, threshold=4).average(), rtol=1e-12)
    frame = found.frame("robustness")
    assert frame["tau"].to_list() == pytest.approx([1.0] * len(METRICS))
    assert frame.select("flipped", "verdicts_lost", "verdicts_reversed").sum().row(0) == (0.0, 0.0, 0.0)
    assert frame["samples"].to_list() == [1] * len(METRICS)


def test_tau_is_scipys_with_ties_and_undefined_where_all_systems_are_equal():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (2, 40, 6)) / 4
    y[0], x[1] = 0.5, 0.25
    expected = [stats.kendalltau(a, b).statistic for a, b in zip(x, y)]
    np.testing.assert_allclose(correlations(x, y), expected, atol=1e-12)
    assert np.isnan(correlations(x, y)[:2]).all()


def test_pairs_that_the_whole_test_set_orders_flip_or_do_not_and_a_tie_is_no_flip():
    truth = np.array([3.0, 2.0, 1.0, 1.0])
    assert flipped(truth, np.array([2.0, 3.0, 1.0, 1.0])) == pytest.approx(1 / 5)
    assert flipped(truth, np.array([2.0, 2.0, 1.0, 0.0])) == 0.0
    assert np.isnan(flipped(np.ones(3), np.arange(3.0)))


def test_undefined_correlations_are_counted_and_left_out_of_means():
    test = cf.Ratings.of(["a", "a", "b", "b"], ["x", "y", "x", "y"], [5, 5, 5, 5])
    runs = {"one": {"a": ["x", "z"], "b": ["x", "z"]}, "two": {"a": ["z", "w"], "b": ["z", "w"], "c": ["x"]}}
    frame = assess(runs, test, ["P@2"], scenarios="items", sizes=[0.5], samples=20).frame("robustness")
    row = frame.row(0, named=True)
    assert 0 < row["undefined"] < 20
    assert row["tau"] == 1.0
    nothing = assess(runs, test, ["P@2"], scenarios="popular", sizes=[0.5], seed=1).frame("robustness")
    assert nothing["undefined"].item() + (nothing["tau"].item() is not None) == 1


def test_verdicts_are_lost_and_turn_round_as_the_paired_t_test_says(world):
    runs, test = world
    found = assess(runs, test, ["nDCG@10"], threshold=4, scenarios="large", sizes=[0.2], seed=3)
    mask = SCENARIOS["large"].mask(Judgments.of(test, 4.0), 0.2, 0, 3)
    then, now = (
        cf.compare(cf.measure(runs, part, ["nDCG@10"], threshold=4), significance="student", correction="none").frame(
            detail=True
        )
        for part in (test, test.keep(mask))
    )
    significant = then["significant"]
    lost = (significant & (then["better"] != now["better"]).fill_null(True)).sum() / significant.sum()
    row = found.frame("robustness").row(0, named=True)
    assert row["verdicts_lost"] == pytest.approx(lost)
    assert lost > 0


def test_rounding_to_four_decimals_makes_ties(world):
    runs, test = world
    frames = [
        assess(runs, test, ["P@10"], threshold=4, scenarios="ratings", sizes=[0.05], samples=5, decimals=decimals)
        for decimals in (12, 1)
    ]
    fine, coarse = (one.frame("samples")["tau"].to_numpy() for one in frames)
    assert not np.array_equal(fine, coarse, equal_nan=True)


def test_results_are_the_same_for_any_number_of_threads(world, monkeypatch):
    runs, test = world
    frames = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(settings, "threads", threads)
        found = assess(runs, test, METRICS, threshold=4, sizes=[0.5, 0.1], samples=7, significance="t")
        frames.append(found.frame("samples"))
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])


def test_tau_ap_is_an_option(world):
    from cranfield.metrics.correlation import tau_ap

    runs, test = world
    found = assess(runs, test, ["P@10"], threshold=4, scenarios="ratings", sizes=[0.2], samples=3, correlation="tau-ap")
    whole = found.whole[0, 0, 0]
    for row in found.frame("samples").iter_rows(named=True):
        assert row["tau"] == pytest.approx(tau_ap(whole.round(12), np.round(row["values"], 12)))


def test_a_metric_where_lower_is_better_orders_systems_the_other_way_round(world):
    runs, test = world
    found = assess(runs, test, ["P@10", "RBPresidual@10"], threshold=4, scenarios="ratings", sizes=[0.5], samples=4)
    frame = found.frame("samples").filter(pl.col("metric") == "RBPresidual@10")
    assert frame["tau"].min() > 0.5
    assert found.frame("correlation").filter(pl.col("metric_a") != pl.col("metric_b"))["tau"].min() > 0


@pytest.mark.parametrize("users", [2, 7, 300])
def test_the_verdicts_are_those_of_scipys_paired_t_test(users):
    rng = np.random.default_rng(users)
    values = rng.random((8, users)).round(1) * np.linspace(0.8, 1.0, 8)[:, None]
    expected = []
    for a in range(8):
        for b in range(a + 1, 8):
            found = stats.ttest_rel(values[a], values[b])
            expected.append(int(np.sign(found.statistic)) if found.pvalue < 0.05 else 0)
    assert verdicts(values, 0.05).tolist() == expected
    assert users < 10 or 0 < np.count_nonzero(expected) < len(expected)


def test_equal_systems_a_constant_difference_one_user_and_missing_values():
    assert verdicts(np.full((2, 5), 0.1), 0.05).tolist() == [0]
    assert verdicts(np.array([[0.1, 0.2, 0.3], [0.3, 0.4, 0.5]]), 0.05).tolist() == [-1]
    assert verdicts(np.array([[0.1], [0.9]]), 0.05).tolist() == [0]
    some = np.array([[0.9, 0.8, np.nan, 0.9, 0.7], [0.1, 0.2, 0.9, 0.3, 0.1]])
    assert verdicts(some, 0.05).tolist() == [1]


@pytest.mark.parametrize("exponent", [-900, -600, 600, 900])
def test_very_small_and_very_large_values_have_the_verdicts_of_ordinary_ones(exponent):
    values = np.random.default_rng(0).random((8, 30)) * np.linspace(0.6, 1.0, 8)[:, None]
    found = verdicts(values, 0.05)
    assert 0 < np.count_nonzero(found) < len(found)
    assert verdicts(np.ldexp(values, exponent), 0.05).tolist() == found.tolist()


def counting(frame):
    calls = []

    def make():
        calls.append(1)
        return frame

    return make, calls


def test_a_chunk_is_made_once_and_anew_when_its_inputs_change(tmp_path):
    make, calls = counting(pl.DataFrame({"a": [1.5, 2.5]}))
    chunks = Chunks(tmp_path)
    first = chunks.get("ratings-0.5", {"seed": 1}, make)
    assert chunks.get("ratings-0.5", {"seed": 1}, make).equals(first)
    assert len(calls) == 1
    chunks.get("ratings-0.5", {"seed": 2}, make)
    assert len(calls) == 2
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("damage", [b"", b"no Parquet at all", None])
def test_a_damaged_chunk_is_noticed_and_made_again(tmp_path, damage):
    make, calls = counting(pl.DataFrame({"a": [1.5, 2.5]}))
    Chunks(tmp_path).get("x", {}, make)
    (path,) = tmp_path.iterdir()
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content) if damage is None else damage)
    assert Chunks(tmp_path).get("x", {}, make)["a"].to_list() == [1.5, 2.5]
    assert len(calls) == 2
    assert len(list(tmp_path.iterdir())) == 1


def test_without_a_folder_nothing_is_kept():
    make, calls = counting(pl.DataFrame({"a": [1]}))
    Chunks(None).get("x", {}, make)
    Chunks(None).get("x", {}, make)
    assert len(calls) == 2


def test_an_assessment_goes_on_where_it_stopped_with_the_same_result(world, tmp_path, monkeypatch):
    runs, test = world
    asking = {"threshold": 4, "scenarios": ["ratings", "popular"], "samples": 3}
    whole = assess(runs, test, ["P@10", "RR"], sizes=[0.5, 0.2], **asking).frame("samples")
    assess(runs, test, ["P@10", "RR"], sizes=[0.5], out=tmp_path, **asking)
    kept = set(tmp_path.iterdir())
    assert len(kept) == 2
    resumed = assess(runs, test, ["P@10", "RR"], sizes=[0.5, 0.2], out=tmp_path, **asking)
    assert resumed.frame("samples").equals(whole)
    assert kept < set(tmp_path.iterdir())

    def never(*_):
        raise AssertionError("a kept part was made again")

    monkeypatch.setattr(Fold, "_chunk", never)
    again = assess(runs, test, ["P@10", "RR"], sizes=[0.5, 0.2], out=tmp_path, **asking)
    assert again.frame("samples").equals(whole)


def test_other_runs_metrics_thresholds_or_seeds_make_other_chunks(make_world, tmp_path):
    runs, test = make_world(users=20)
    others, _ = make_world(users=20, depth=19)
    asking = {"scenarios": "ratings", "sizes": [0.5], "samples": 2, "out": tmp_path}
    assess(runs, test, ["P@10"], threshold=4, **asking)
    assess(others, test, ["P@10"], threshold=4, **asking)
    assess(runs, test, ["P@9"], threshold=4, **asking)
    assess(runs, test, ["P@10"], threshold=3, **asking)
    assess(runs, test, ["P@10"], threshold=4, seed=1, **asking)
    assert len(list(tmp_path.iterdir())) == 5


def test_another_similarity_makes_other_samples(make_world, tmp_path):
    runs, test = make_world(users=20)
    asked = {"scenarios": "ratings", "sizes": [0.5], "samples": 2, "threshold": 4, "out": tmp_path}
    for share in (0.25, 0.75):
        assess(runs, test, ["ILD@5"], similarity=lambda a, b, share=share: np.full(len(a), share), **asked)
    assert len(list(tmp_path.iterdir())) == 2


def test_other_predictions_make_other_samples(tmp_path):
    test = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "rating": [5, 1, 4, 2]})

    def tau(predictions):
        lists = pl.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 2], "score": [2, 1, 2, 1]})
        runs = {name: lists.with_columns(prediction=pl.lit(value)) for name, value in predictions.items()}
        asked = {"scenarios": "ratings", "sizes": [1.0], "out": tmp_path}
        return assess(runs, test, ["RMSE"], **asked).frame("values")["value"].to_list()

    assert tau({"a": 1.0, "b": 2.0}) != tau({"a": 4.0, "b": 2.0})
