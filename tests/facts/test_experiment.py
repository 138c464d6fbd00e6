"""The facts of an experiment and of the demo, each with its sentence, which comes back from JSON as it was."""

# ruff: noqa: E501
from __future__ import annotations

import json

import pytest

from cranfield.facts import Fact, demo, experiment

MISSING = experiment.Point("D", "a statistical test", None, "compare at least two systems")
SAID: list[tuple[Fact, str]] = [
    (experiment.UntestedAverage("P@10", "pop", 0.12345), "P@10: pop has 0.1235"),
    (
        experiment.UntestedAverage("P@10", "pop", 0.2, "best"),
        "P@10: pop has the best average (0.2000); nothing was tested.",
    ),
    (
        experiment.UntestedAverage("P@10", "pop", None),
        "P@10: nothing can be said, since it is undefined for every user.",
    ),
    (
        experiment.UntestedAverage("P@10", "pop", None, nothing_relevant="no test rating is 4 or more"),
        "P@10: nothing can be said, since no test rating is 4 or more.",
    ),
    (experiment.Inconclusive("no users"), "There are no users to measure, so nothing can be said."),
    (experiment.Inconclusive("no values"), "Nothing can be said: no system has a value by any metric."),
    (
        experiment.Inconclusive("no values", nothing_relevant="no test rating is 4 or more"),
        "Nothing can be said: no test rating is 4 or more.",
    ),
    (experiment.Inconclusive("one system", "pop"), "There is one system, pop, and nothing to compare it with."),
    (
        experiment.Inconclusive("equal averages"),
        "All systems have the same averages, by every metric: these data do not tell them apart.",
    ),
    (
        experiment.Inconclusive("one group"),
        "Warm and cold are not shown separately: at least one test part holds only one of them.",
    ),
    (experiment.OrderByLists("P@10", (), (), None), "P@10: there is nothing to compare."),
    (
        experiment.OrderByLists("P@10", ("a",), ("a",), 0.5),
        "P@10: a is first with both; Kendall's tau between the two orders is 0.50.",
    ),
    (
        experiment.OrderByLists("P@10", ("a",), ("a", "b"), None),
        "P@10: a is first with full lists, a and b are first with condensed ones; there is no order to correlate, because all systems are equal with one kind of list.",
    ),
    (
        experiment.MeasuredAgain(5, plain_means=True),
        "Measured on the first of 5 parts (folds, repetitions or windows). Averages here are plain means over all users; those without a list count as 0.",
    ),
    (experiment.MeasuredAgain(1, plain_means=False), ""),
    (experiment.WrongSplits(()), "Nothing is wrong."),
    (experiment.WrongSplits(("a", "b")), "Something is wrong with a and b."),
    (experiment.OnData("films", experiment.WrongSplits(())), "films: Nothing is wrong."),
    (
        experiment.Searched("Item kNN", 6, "the newest fifth of training", 97, refit=True),
        "Item kNN: 6 trials on the newest fifth of training (97 users), refitted on all training ratings.",
    ),
    (
        experiment.Searched("knn", 1, "the validation part", 1, refit=False),
        "knn: 1 trial on the validation part (1 user), not refitted on the validation ratings.",
    ),
    (
        experiment.EndsRange("Item kNN", "k", 200, upper=True),
        "Item kNN: the best k = 200 ends the range; try larger values.",
    ),
    (
        experiment.EndsRange("ease", "l2", 0.5, upper=False),
        "ease: the best l2 = 0.5 ends the range; try smaller values.",
    ),
    (
        experiment.FewValidationUsers(("knn", "ease"), 97, "the newest fifth of training"),
        "knn and ease: only 97 users of the newest fifth of training are served, so chance decides much of the choice; take a larger validation part, or average over several (validation_windows = 3).",
    ),
    (
        experiment.FlatSearch("knn", 1, "P@10"),
        "knn: 1 other setting lies within one standard error (paired by user) of the best by P@10, so the validation part does not decide.",
    ),
    (
        experiment.UnusedInSearch("knn", 1200, refit=True),
        "knn: the search does not use 1,200 of the newest training ratings, since they are not targets; the refit learns from them.",
    ),
    (
        experiment.UnusedInSearch("knn", 1, refit=False),
        "knn: the search does not use 1 of the newest training ratings, since it is not a target; without a refit nothing learns from it.",
    ),
    (
        experiment.UnevenBudget("trials", ("knn", 20), ("ease", 6)),
        "The searches differ more than twofold in their budget: knn 20 trials, ease 6 trials; give them about the same.",
    ),
    (
        experiment.UnevenBudget("seconds", ("knn", 90.0), ("ease", 30.0)),
        "The searches differ more than twofold in their budget: knn 90 s, ease 30 s; give them about the same.",
    ),
    (
        experiment.SearchedAlone(("knn",), ("ease", "svd")),
        "knn was searched and ease and svd not, which favours what was searched; search all of them with the same budget.",
    ),
    (
        experiment.NewestForValidation("films"),
        "Every test rating of films is later than its training ratings, but the validation part is drawn at random; set validation = 'temporal(train=0.8)'.",
    ),
    (
        experiment.NotRefitted(("mine",)),
        "mine is not refitted: fit takes a validation part, and only systems that learn by epochs say when to stop without one.",
    ),
    (
        experiment.NotLearnedFrom(1200, ("knn", "ease")),
        "knn and ease learn nothing from the 1,200 validation ratings, because refit = false.",
    ),
    (
        experiment.TrainingSeeds(3, ("mf",)),
        "The split is the same in all 3 repetitions: they are 3 training seeds of mf, not new splits, and intervals do not say how results vary between test periods; for several of them, use rolling.",
    ),
    (
        experiment.Point(
            "systems", "how it was tuned", "by a search", warning=experiment.EndsRange("knn", "k", 9, upper=True)
        ),
        "how it was tuned: by a search WARNING: knn: the best k = 9 ends the range; try larger values.",
    ),
    (
        experiment.Completeness(4, (), ("tuning",)),
        "All 4 points are reported. Warnings: tuning.",
    ),
    (experiment.BestSetting("knn(k=5)", 3, "P@10", 0.25), "knn(k=5) is the best of 3 by P@10: 0.2500"),
    (experiment.SettingChange(), "The two state the same experiment."),
    (experiment.SettingChange("threshold", "C2", 4.0, 3.5), "C2 threshold: 4 → 3.5"),
    (experiment.SettingChange("filters", "A1", (), ("k_core(k=5)",)), "A1 filters: none → k_core(k=5)"),
    (
        experiment.OrderChange("films", 1.0),
        "On films the first metrics give the same order of systems (Kendall's tau 1.00).",
    ),
    (
        experiment.OrderChange("films", 0.3333),
        "On films the first metrics give a different order of systems (Kendall's tau 0.33).",
    ),
    (
        experiment.VerdictChange("films", "P@10", "a", "b", None, "b"),
        "On films by P@10, a and b: no difference → b.",
    ),
    (MISSING, "a statistical test: MISSING: compare at least two systems"),
    (experiment.Point("C3", "how values are averaged", "mean"), "how values are averaged: mean"),
    (experiment.Completeness(12, ()), "All 12 points are reported."),
    (
        experiment.Completeness(12, ("a statistical test", "every seed")),
        "2 of 12 points are missing: a statistical test; every seed.",
    ),
    (
        demo.PublishedWinner("P@10", "held-out ratings", "pop", 0.125),
        "The table everyone publishes (P@10 on held-out ratings) puts pop first. In truth, users like 12.5 % of what it recommends.",
    ),
    (
        demo.DemoAnswer(
            demo.PublishedWinner("P@10", "held-out ratings", "pop", 0.125),
            demo.TrulyBest("ease", 0.4, 3, 8, "knn", 0.3),
        ),
        "The published table puts pop first; users truly like 12.5 % of its items, and 40.0 % of those of ease.",
    ),
    (
        demo.TrulyBest("ease", 0.4, 3, 8, "knn", 0.3),
        "The truly best system is ease, with 40.0 %; the published table has it at rank 3 of 8.",
    ),
    (
        demo.TrulyBest("ease", 0.4, 1, 8, "knn", 0.3),
        "It is the best system in truth as well; knn comes next, with 30.0 %.",
    ),
    (
        demo.Overrated("popularity", 2, 8, 8),
        "The table overrates popularity: rank 2 of 8, but rank 8 in truth.",
    ),
    (
        demo.TrueOrder({"held-out ratings": 0.25, "ratings of random items": 0.9}),
        "Kendall's tau with the true order: 0.25 on held-out ratings, 0.90 on ratings of random items (1: the same order, 0: no relation).",
    ),
    (
        demo.TrueOrder({"as it is": 0.25, "by percentile": 0.5}, of_protocols=True),
        "Kendall's tau with the true order is 0.25 under as it is, 0.50 under by percentile. In another world it may be the other way round.",
    ),
    (
        demo.SignificantPairs("held-out ratings", 28, 20, 5),
        "On held-out ratings 20 of 28 pairs differ significantly; in 5 of them the winner is truly the worse system.",
    ),
    (
        demo.SignificantPairs("held-out ratings", 28, 20, 5, 12, 4),
        "On held-out ratings 20 of 28 pairs differ significantly; in 5 of them the winner is truly the worse system. In 12 of them a comparison calls nobody better, because unjudged items could reverse the order; 4 of these are wrong.",
    ),
    (
        demo.SignificantPairs("held-out ratings", 28, 20, 0, 1),
        "On held-out ratings 20 of 28 pairs differ significantly; no winner is truly worse. In 1 of them a comparison calls nobody better, because unjudged items could reverse the order.",
    ),
    (
        demo.SignificantPairs("held-out ratings", 28, 20, 0),
        "On held-out ratings 20 of 28 pairs differ significantly; no winner is truly worse.",
    ),
    (
        demo.ReliedOn("ratings of random items", "ease", ("knn", "svd"), "ease"),
        "What can be relied on: on ratings of random items, ease, truly the best, leads, and knn and svd are not significantly worse. Significance says that a difference is not an accident of the sampled users. It does not say that the test set asks the right question.",
    ),
    (
        demo.ReliedOn("ratings of random items", "ease", (), "svd"),
        "What can be relied on: on ratings of random items, ease leads; svd is missed. Significance says that a difference is not an accident of the sampled users. It does not say that the test set asks the right question.",
    ),
    (
        demo.AdviceChecked("held-out ratings", "AP", {"AP": 0.25, "P": 0.25}),
        "Which metric to trust, checked: the assessment of the held-out ratings puts AP first, and all 2 metrics are equally far from the truth (tau 0.25).",
    ),
    (
        demo.AdviceChecked("held-out ratings", "AP", {"AP": 0.25, "P": 0.1}),
        "Which metric to trust, checked: the assessment of the held-out ratings puts AP first, and no metric comes closer to the true order there (tau 0.25).",
    ),
    (
        demo.AdviceChecked("held-out ratings", "AP", {"AP": 0.25, "P": 0.5}),
        "Which metric to trust, checked: the assessment of the held-out ratings puts AP first (tau 0.25 with the truth); P comes closest to the true order (tau 0.50). An assessment shows how well a metric copes with missing ratings, not what all metrics miss.",
    ),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert Fact.read(json.loads(json.dumps(fact.as_dict()))) == fact


def test_every_fact_of_an_experiment_and_of_the_demo_has_a_sentence_here():
    kinds = {kind for kind in Fact._kinds.values() if kind.__module__ in (experiment.__name__, demo.__name__)}
    assert {type(fact) for fact, _ in SAID} == kinds


def test_a_card_counts_missing_points_without_their_topics():
    done = experiment.Point("C3", "how values are averaged", "mean", "state it")
    assert experiment.Completeness.of((MISSING, done)).count == "1 of 2 are missing."
    assert experiment.Completeness.of((done,)).count == "Nothing is missing."
    assert (MISSING.entry[3], done.entry[3]) == ("compare at least two systems", "")
