from __future__ import annotations

import re
import sys

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield.assessments import assess, assess_folds, subset_scores
from cranfield.assessments.assessment import STUDIES
from cranfield.assessments.power import discriminative_power
from cranfield.facts.assessment import RankAlike
from cranfield.measures import Average
from cranfield.rankings import Run


def test_every_study_is_a_tidy_frame(assessed):
    heights = {study: assessed.frame(study).height for study in STUDIES}
    assert heights["robustness"] == 5 * 3 * 3 * 9
    assert heights["values"] == 5 * 3 * 3 * 9 * 5
    assert heights["power"] == 2 * 9  # the median has no test
    assert heights["curves"] == 2 * 9 * 10
    assert heights["correlation"] == 3 * 81 + 9 * 6
    assert heights["groups"] == heights["aggregation"] == heights["advice"] == 27
    assert heights["cutoffs"] == 0
    with pytest.raises(SettingError, match="did you mean 'robustness'"):
        assessed.frame("robustnes")


def test_summaries_are_made_of_the_samples(assessed):
    row = assessed.frame().filter(pl.col("scenario") == "ratings", pl.col("size") == 0.1).row(0, named=True)
    own = assessed.frame("samples").filter(
        pl.col("scenario") == "ratings",
        pl.col("size") == 0.1,
        pl.col("average") == row["average"],
        pl.col("metric") == row["metric"],
    )
    tau = own["tau"].to_numpy()
    tau = tau[~np.isnan(tau)]
    assert row["samples"] == 6
    assert row["tau"] == pytest.approx(tau.mean())
    assert row["standard_error"] == pytest.approx(tau.std(ddof=1) / np.sqrt(len(tau)))
    assert [row[name] for name in ("q05", "median", "q95")] == pytest.approx(np.quantile(tau, [0.05, 0.5, 0.95]))
    assert row["flipped"] == pytest.approx(own["flipped"].mean())
    value = assessed.frame("values").filter(
        pl.col("scenario") == "ratings",
        pl.col("size") == 0.1,
        pl.col("average") == row["average"],
        pl.col("metric") == row["metric"],
        pl.col("system") == "s2",
    )
    assert value["value"].item() == pytest.approx(np.mean([one[2] for one in own["values"].to_list()]))


AVERAGES = (
    "mean",
    "geometric",
    "geometric(form=adjusted, epsilon=0.01)",
    "weighted(by=judged)",
    "weighted(by=relevant)",
    "median",
)


@pytest.fixture(scope="module")
def averaged(world):
    """Every average in every study, at two cut-offs."""
    runs, test = world
    return assess(
        runs, test, ["P@10", "nDCG@10"], threshold=4, sizes=[1, 0.4], samples=3, averages=AVERAGES, cutoffs=[5],
        resamples=50,
    )  # fmt: skip


@pytest.mark.parametrize("average", AVERAGES)
def test_every_average_is_in_every_study(averaged, average):
    known = str(Average.of(average))
    assert averaged.averages[AVERAGES.index(average)] == known
    for study in ("robustness", "values", "groups", "cutoffs", "aggregation", "advice"):
        own = averaged.frame(study).filter(pl.col("average") == known)
        assert set(own["metric"]) == {"P@10", "P@5", "nDCG@10", "nDCG@5"}, study
    robustness = averaged.frame("robustness").filter(pl.col("average") == known)
    assert robustness.height == 5 * 2 * 4
    assert robustness.filter(pl.col("size") == 1.0)["tau"].to_list() == pytest.approx([1.0] * 5 * 4)
    between = averaged.frame("correlation").filter(pl.col("average_a") == "mean", pl.col("average_b") == known)
    assert set(between["metric_a"]) == set(averaged.metrics)
    assert averaged.correlation(known).shape == (4, 4)


@pytest.mark.parametrize("average", AVERAGES[:-1])
def test_power_is_that_of_discriminative_power_under_every_average_that_has_a_test(world, averaged, average):
    runs, test = world
    scores = cf.measure(runs, test, averaged.metrics, threshold=4)
    expected = discriminative_power(scores, average=average, resamples=50)
    known = str(Average.of(average))
    found = averaged.frame("power").filter(pl.col("average") == known).drop("average")
    assert found.drop("fold_sd").equals(expected.frame())
    assert found["fold_sd"].is_null().all()  # there is one fold
    curves = averaged.frame("curves").filter(pl.col("average") == known).drop("average")
    assert curves.equals(expected.curve(first=None))


def test_the_median_has_no_test_and_takes_the_significant_pairs_of_the_mean_in_the_advice(averaged):
    assert "median" not in averaged.frame("power")["average"].to_list()
    advice = averaged.frame("advice").sort("metric").partition_by("average", as_dict=True)
    assert advice["median",]["significant"].to_list() == advice["mean",]["significant"].to_list()


def test_without_resamples_there_is_no_bootstrap_and_nothing_else_changes(world, averaged):
    runs, test = world
    plain = assess(
        runs, test, ["P@10", "nDCG@10"], threshold=4, sizes=[1, 0.4], samples=3, averages=AVERAGES, cutoffs=[5]
    )
    assert plain.frame("power").equals(averaged.frame("power").drop("asl_significant", "required_difference"))
    assert plain.frame("advice").equals(averaged.frame("advice"))
    with pytest.raises(SettingError, match="resamples=-1"):
        assess(runs, test, ["P@10"], threshold=4, resamples=-1)


@pytest.mark.usefixtures("undrawn")
def test_the_figures_of_every_average_are_saved_and_an_average_without_a_test_has_no_curves(world, tmp_path):
    runs, test = world
    found = assess(
        runs, test, ["P@10", "AP@10"], threshold=4, scenarios="ratings", sizes=[1, 0.5], samples=2,
        averages=["mean", "geometric(form=adjusted, epsilon=0.01)", "median"],
    )  # fmt: skip
    found.save(tmp_path)
    folder = tmp_path / "figures"
    drawn = {str(path.relative_to(folder)) for path in folder.rglob("*.svg")}
    own = {"robustness.svg", "values.svg", "flips.svg", "correlation.svg"}
    assert drawn == {
        *own, "power.svg", "aggregation.svg",
        *(f"geometric(form=adjusted,epsilon=0.01)/{name}" for name in (*own, "power.svg")),
        *(f"median/{name}" for name in own),
    }  # fmt: skip


def test_a_part_is_what_assessing_only_that_part_gives(world, assessed):
    runs, test = world
    alone = assess(runs, test, ["P@10", "AP@10"], threshold=4, sizes=[1, 0.5, 0.1], samples=6, averages="geometric")
    part = assessed.part(["AP@10", "P@10"], "geometric")
    for study in STUDIES:
        if study != "power":  # its rank is among all metrics
            assert part.frame(study).equals(alone.frame(study)), study
    renamed = assessed.part({"AP@10": "MAP"}, "median")
    assert (renamed.metrics, renamed.averages) == (("MAP",), ("median",))
    assert renamed.frame("power")["average"].to_list() == ["mean"]
    assert renamed.frame("cutoffs").height == 0
    assert assessed.part("AP@10").metrics == ("AP@10",)
    with pytest.raises(SettingError, match="AP@10"):
        assessed.part(["AP@11"])
    for wrong in ([], {"AP@10": "same", "P@10": "same"}):
        with pytest.raises(SettingError, match="give each metric a different name"):
            assessed.part(wrong)


def test_aggregation_holds_each_metric_against_its_own_other_averages(assessed):
    frame = assessed.frame("aggregation")
    assert frame.filter(pl.col("average") == "mean")["tau_with_first"].to_list() == pytest.approx([1.0] * 9)
    row = frame.filter((pl.col("metric") == "P@10") & (pl.col("average") == "geometric")).row(0, named=True)
    from scipy import stats

    expected = stats.kendalltau(assessed.whole[0, 0, 0].round(12), assessed.whole[0, 1, 0].round(12)).statistic
    assert row["tau_with_first"] == pytest.approx(expected)


def test_it_prints_what_a_person_would_say(assessed):
    text = "\n".join(assessed.verdict)
    assert str(assessed).startswith(f"{assessed.verdict[0]}\n\n")
    assert re.match(r"No clear choice: .+? scores highest, but 5 systems are too few \(at least eight\)", text)
    assert re.search(
        r"With ratings missing at random, \S+ keeps the .* best \(mean tau 0.\d+, \d+% of the pairs flip\)", text
    )
    assert "tells the systems apart best" in text
    assert repr(assessed) == "Assessment(5 systems, 9 metrics, 3 averages, 5 scenarios)"
    assert "<p>No clear choice" in assessed._repr_html_()


def test_a_metric_by_itself_is_not_praised(world):
    runs, test = world
    said = assess(runs, test, ["P@10"], threshold=4, scenarios="ratings", sizes=[1, 0.5], samples=2).verdict
    assert "P@10 was assessed alone" in said[0]
    assert not any(word in " ".join(said) for word in ("best", "least", "sure"))


def test_systems_that_rank_alike_are_named_with_the_power_without_one_of_them(world):
    runs, test = world
    settings = {"threshold": 4, "scenarios": "ratings", "sizes": [0.5], "samples": 2}
    three = {"one": runs[1], "other": runs[2], "twin": runs[1]}
    found = assess(three, test, ["P@10", "AP@10"], **settings)
    (fact,) = [fact for fact in found.facts() if isinstance(fact, RankAlike)]
    assert fact.systems == ("one", "twin")
    power = assess({name: three[name] for name in ("one", "other")}, test, ["P@10", "AP@10"], **settings).frame("power")
    assert dict(fact.without) == pytest.approx(dict(power.select("metric", "dp").rows()))
    assert not any(isinstance(fact, RankAlike) for fact in assess(runs[1:3], test, ["P@10"], **settings).facts())


def test_metrics_that_are_alike_are_told_to_be(world):
    runs, test = world
    same = {"one": runs[1], "two": runs[1]}
    said = assess(same, test, ["P@10", "AP@10"], threshold=4, scenarios="ratings", sizes=[0.5], samples=2).verdict
    assert said[0] == "No clear choice: P@10 and AP@10 score the same on these data."
    assert any(
        text.startswith("P@10 tells the systems apart no better than the others (its discriminative ") for text in said
    )
    whole = assess(runs[1:3], test, ["P@10", "Recall@10"], threshold=4, scenarios="ratings", sizes=[0.9], samples=2)
    equally = "With ratings missing at random, all metrics keep the order equally well (mean tau 1.000)."
    assert equally in whole.verdict


def test_a_scenario_without_smaller_test_sets_cannot_be_weighed(world):
    with pytest.raises(SettingError, match="no criterion 'ratings' to weigh"):
        assess(*world, ["P@10"], scenarios="ratings", sizes=[1], weights={"ratings": 2})


def test_decimals_that_no_number_has_and_folds_that_are_no_pairs_are_refused(world, assessed):
    with pytest.raises(SettingError, match="decimals=400 is more than a number holds"):
        assess(*world, ["P@10"], decimals=400)
    with pytest.raises(SettingError, match="a fold is a pair of runs and test set"):
        assess_folds([world[0]], ["P@10"])
    with pytest.raises(SettingError, match="average='middle' is not one of mean"):
        assessed.correlation("middle")


def test_folds_are_studied_by_themselves_with_the_variation_between_them(make_world):
    folds = [make_world(seed=seed) for seed in (0, 1)]
    asking = {"threshold": 4, "scenarios": "ratings", "sizes": [0.3], "samples": 4}
    both = assess_folds(folds, ["P@10", "nDCG@10"], **asking)
    each = [assess(*fold, ["P@10", "nDCG@10"], **asking) for fold in folds]
    assert both.frame("samples").drop("fold").equals(pl.concat([one.frame("samples").drop("fold") for one in each]))
    row = both.frame().row(0, named=True)
    means = [one.frame().row(0, named=True)["tau"] for one in each]
    assert (row["tau"], row["fold_sd"]) == pytest.approx((np.mean(means), np.std(means, ddof=1)))
    assert both.whole.shape == (2, 1, 2, 5)
    assert both.frame("correlation")["fold_sd"].is_not_nan().all()
    assert both.frame("advice").height == 2
    dp = np.array([one.frame("power").sort("metric")["dp"].to_list() for one in each])
    assert both.frame("power").sort("metric")["fold_sd"].to_list() == pytest.approx(dp.std(axis=0, ddof=1))
    values = np.array([one.frame("values")["value"].to_list() for one in each])
    assert both.frame("values")["fold_sd"].to_list() == pytest.approx(values.std(axis=0, ddof=1))
    assert both.frame("aggregation")["fold_sd"].to_list() == [0.0, 0.0]  # a metric with itself
    # A note that applies to every fold is given once.
    assert {str(note).partition(":")[0] for note in both.step.notes} == {"s0", "fold 1", "fold 2"}


def test_a_metric_of_ones_own_and_one_of_the_whole_system_work_only_slower(world):
    @cf.metric("FirstJudged")
    def first_judged(judged):
        return judged.total(where=judged.ranks == 1)

    runs, test = world
    found = assess(
        runs, test, ["FirstJudged@5", "nDCG@10", "ItemCoverage@10"], threshold=4, scenarios="ratings", sizes=[0.5],
        samples=3, train=test.keep(test.values < 3),
    )  # fmt: skip
    assert found.frame()["tau"].is_not_null().sum() >= 2
    assert "FirstJudged@5" in str(found.step.notes[-1])
    assert found.frame("power")["metric"].to_list().count("ItemCoverage@10") == 0


def test_without_numba_it_works_and_says_so(world, monkeypatch):
    runs, test = world
    asking = {"threshold": 4, "scenarios": "items", "sizes": [0.5], "samples": 3}
    fast = assess(runs, test, ["P@10", "AP"], **asking)
    # The package attribute of this name is the function, so the module is looked up by its path.
    for module in (subset_scores, sys.modules["cranfield.assessments.assessing"]):
        monkeypatch.setattr(module, "compiled", lambda: None)
    slow = assess(runs, test, ["P@10", "AP"], **asking)
    assert "numba is not installed" in str(slow.step.notes[-1])
    assert slow.frame("samples").drop("values").equals(fast.frame("samples").drop("values"))


def test_the_whole_test_set_alone_still_gives_power_correlation_and_advice(world):
    runs, test = world
    found = assess(runs, test, ["P@10", "P@10", "RR"], threshold=4, scenarios="ratings", sizes=[1])
    assert found.metrics == ("P@10", "RR")
    assert found.advice().criteria == ("significant",)
    assert "No clear choice" in str(found)


def test_lists_of_one_relevant_item_are_assessed(world):
    _, test = world
    relevant = np.flatnonzero(test.values >= 4)
    runs = []
    for s in range(3):
        ranks = np.random.default_rng(s).integers(0, 30 - 8 * s, len(relevant)).astype(np.int32)
        runs.append(
            Run(
                f"s{s}",
                test.user_ids,
                test.item_ids,
                test.users[relevant],
                np.arange(len(relevant) + 1),
                test.items[relevant],
                ranks=ranks,
                lengths=np.full(len(relevant), 40, dtype=np.int32),
                one_relevant=True,
            )
        )
    found = assess(
        runs, test, ["P@10", "RR", "AUC"], threshold=4, scenarios=["users", "large"], sizes=[1, 0.5], samples=3
    )
    scores = cf.measure(runs, test, ["P@10", "RR", "AUC"], threshold=4)
    np.testing.assert_allclose(found.whole[0, 0].T, scores.average(by="list"), rtol=1e-12)
    assert found.frame("samples").filter(pl.col("size") == 0.5)["users"].max() < len(relevant)


def test_condensed_lists_and_one_average_given_as_text(world):
    runs, test = world
    found = assess(
        runs, test, "nDCG@10", threshold=4, scenarios=["users"], sizes=[1], averages="median", lists="condensed"
    )
    scores = cf.measure(runs, test, "nDCG@10", threshold=4, lists="condensed")
    np.testing.assert_allclose(found.whole[0, 0, 0], scores.average("median")[:, 0], rtol=1e-12)
    assert found.frame("power")["average"].to_list() == ["mean"]


def test_users_for_whom_a_metric_is_undefined_can_be_left_out(world):
    runs, test = world
    found = assess(runs, test, "Recall@10", threshold=5, scenarios="ratings", sizes=[1], undefined="leave out")
    expected = cf.measure(runs, test, "Recall@10", threshold=5).average(undefined="leave out")
    np.testing.assert_allclose(found.whole[0, 0, 0], expected[:, 0], rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scenarios": "rating"}, "did you mean 'ratings'"),
        ({"metrics": ["nDGC@10"]}, "did you mean 'nDCG'"),
        ({"averages": "meen"}, "did you mean 'mean'"),
        ({"sizes": [2]}, "sizes"),
        ({"samples": 0}, "samples"),
        ({"alpha": 1.5}, "alpha"),
        ({"correlation": "rho"}, "correlation"),
        ({"undefined": "one"}, "undefined"),
        ({"weights": {"speed": 1}}, "criterion"),
        ({"significance": "studnt"}, "did you mean 'student'"),
        ({"significance": "wilcoxon(zero=pratt)"}, "wilcoxon has no parameter 'zero'"),
        ({"decimals": -1}, "decimals"),
        ({"metrics": []}, "no metric"),
        ({"scenarios": []}, "no scenario"),
        ({"averages": []}, "no average"),
        ({"weights": {"significant": float("inf")}}, "the weight inf of significant is not a number"),
    ],
)
def test_a_setting_that_cannot_be_is_one_line(world, options, message):
    runs, test = world
    with pytest.raises(SettingError, match=message) as raised:
        assess(runs, test, **{"metrics": ["P@10"], "threshold": 4, **options})
    assert "\n" not in str(raised.value)


def test_one_system_has_no_order_and_folds_need_the_same_systems(make_world):
    runs, test = make_world(users=10)
    with pytest.raises(SettingError, match="at least two"):
        assess(runs[:1], test, ["P@10"])
    with pytest.raises(SettingError, match="fold 2 has other systems"):
        assess_folds([(runs, test), (runs[:3], test)], ["P@10"])
    with pytest.raises(SettingError, match="at least one pair"):
        assess_folds([], ["P@10"])
    with pytest.raises(SettingError, match="1 folds and 2 training sets"):
        assess_folds([(runs, test)], ["P@10"], trains=[test, test])


@pytest.mark.parametrize("metrics", ["P@2", ["P@2", "RR"]])
def test_nothing_relevant_gives_no_advice(metrics):
    test = cf.Ratings.of([1, 2, 3], [1, 1, 2], [3, 2, 1])
    runs = {"a": {1: [1, 2], 2: [2, 1], 3: [2, 1]}, "b": {1: [2, 1], 2: [1, 2], 3: [1, 2]}}
    with pytest.raises(cf.SettingError, match="nothing can be measured: no test rating is 4 or more; the highest is 3"):
        cf.assess(runs, test, metrics, threshold=4, samples=2)
    with pytest.raises(cf.SettingError, match="samples=1000000000000 is too large"):
        cf.assess(runs, test, metrics, samples=10**12)


def test_the_advice_is_on_metrics_that_have_winners(world):
    runs, test = world
    # The number of items shown keeps the order of systems better than any accuracy, and does not say who is better.
    few = {"threshold": 4, "scenarios": "ratings", "sizes": [0.5], "samples": 2}
    advised = assess(runs, test, ["Gini@10", "P@10", "ItemCoverage@10", "AP@10"], **few)
    assert sorted(advised.advice().frame()["metric"]) == ["AP@10", "P@10"]
    assert set(advised.frame("robustness")["metric"]) == {"Gini@10", "P@10", "ItemCoverage@10", "AP@10"}
    assert advised.frame("aggregation").height == 4
    only = assess(runs, test, ["Gini@10", "ItemCoverage@10"], **few)
    assert only.advice().frame().height == 2
