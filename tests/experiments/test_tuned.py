"""Warnings about searches, each with data for which it would be false; and what repetitions vary."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import CranfieldError, Ratings, measure, recommend, simulate, splits, write
from cranfield.audits import plan_audit
from cranfield.experiments import Range, Results, Search, Source, System, Trial, Tuning, plan, review, run, search
from cranfield.experiments.tuned import tuning_warnings
from cranfield.facts import experiment as facts

LARGE = (Source("large", simulate="world(users=260, items=60, ratings=6000)"),)
NEAR = System("near", "knn", tuning=Tuning({"k": (2, 20)}, "P@5"))


def _warned(results, kind, data=None):
    return [fact for fact in results.facts(data or results.data[0]) if isinstance(fact, kind)]


def _search(space, best):
    values = {name: values[0] if not isinstance(values, Range) else values.low for name, values in space.items()}
    spelled = ", ".join(f"{name}={value}" for name, value in {**values, **best}.items())
    return Search("P@5", False, (Trial(f"knn({spelled})", 0.5, 0.0),), space)


@pytest.mark.parametrize(
    ("space", "best", "ends"),
    [
        ({"k": [10, 20, 30]}, {"k": 30}, {"k": (30, True)}),
        ({"k": [10, 20, 30]}, {"k": 10}, {"k": (10, False)}),
        ({"k": [30, 10, 20]}, {"k": 30}, {"k": (30, True)}),  # in any order
        ({"k": [10, 20, 30]}, {"k": 20}, {}),
        ({"k": [10, 20]}, {"k": 20}, {}),  # two values do not make a range
        ({"k": [20, 20, 10]}, {"k": 20}, {}),
        ({"k": [1, 5, 9]}, {"k": 1}, {}),  # k is at least 1, a natural bound
        ({"q": [0.0, 1.0, 2.0]}, {"q": 0.0}, {}),
        ({"q": [0.5, 1.0, 2.0]}, {"q": 0.5}, {"q": (0.5, False)}),
        ({"similarity": ["cosine", "pearson", "jaccard"]}, {"similarity": "jaccard"}, {}),  # words have no order
        ({"k": Range(5, 50)}, {"k": 50}, {"k": (50, True)}),
        ({"k": Range(5, 50)}, {"k": 49}, {}),
        ({"k": [5, 6, 7], "q": [1.0, 2.0, 3.0]}, {"k": 7, "q": 2.0}, {"k": (7, True)}),
    ],
)
def test_a_best_value_at_the_end_of_a_range_is_said_unless_nothing_lies_beyond(space, best, ends):
    assert _search(space, best).ends == ends


def test_a_flat_search_is_one_with_others_within_a_standard_error_paired_by_user():
    ratings = simulate.world(200, 60, 5000, seed=2).ratings
    split = splits.random(ratings, train=0.8, seed=1)
    space = {"k": [1, 2, 5, 10, 20, 40, 80]}
    tried = search(split, "knn", space, "nDCG@10", threshold=4)
    inner = splits.random(split.train, train=0.8, seed=0)
    values = {}
    for trial in tried.trials:
        scores = measure(recommend(inner, trial.system), inner.test, ["nDCG@10"], threshold=4)
        values[trial.system] = np.nan_to_num(scores.values[0, 0])
        assert trial.value == pytest.approx(values[trial.system].mean())
    best = values[tried.best.system]
    expected = set()
    for system, own in values.items():
        gap = best - own
        error = gap.std(ddof=1) / np.sqrt(len(gap))
        trial = next(trial for trial in tried.trials if trial.system == system)
        assert tried.standard_error(trial) == pytest.approx(error, rel=1e-4, abs=1e-12)
        if system != tried.best.system and gap.mean() <= error:
            expected.add(system)
    assert {trial.system for trial in tried.level} == expected
    assert 0 < len(expected) < len(space["k"]) - 1  # so it is neither never nor always said
    assert f"{len(expected)} other setting" in str(tried)
    assert tried.best.error == pytest.approx(best.std(ddof=1) / np.sqrt(len(best)), rel=1e-4)


def test_over_windows_values_are_averaged_and_errors_add():
    ratings = simulate.world(120, 40, 3000, seed=4).ratings
    split = splits.temporal(ratings, train=0.8)
    both = search(split, "knn", {"k": [3, 30]}, "P@5", threshold=4, validation_windows=2)
    first = search(split, "knn", {"k": [3, 30]}, "P@5", threshold=4)
    inner = splits.temporal(split.train, train=0.8)
    second = search(splits.Split(inner.train, inner.test, inner.step), "knn", {"k": [3, 30]}, "P@5", threshold=4)
    for trial, one, other in zip(both.trials, first.trials, second.trials):
        assert trial.value == pytest.approx((one.value + other.value) / 2)
    assert both.served == min(first.served, second.served)
    assert both.validation == "the newest fifth of training, and 1 more before it"
    worse = next(k for k, trial in enumerate(both.trials) if trial != both.best)
    errors = []
    for part in (first, second):
        gap = part.trials[1 - worse].users.astype(float) - part.trials[worse].users
        errors.append(gap.std(ddof=1) / np.sqrt(len(gap)))
    assert both.standard_error(both.trials[worse]) == pytest.approx(np.hypot(*errors) / 2)


def test_a_metric_of_the_whole_system_has_no_standard_error():
    split = splits.random(simulate.world(60, 40, 900).ratings, train=0.8)
    tried = search(split, "knn", {"k": [1, 5, 9]}, "ItemCoverage@5")
    assert [tried.standard_error(trial) for trial in tried.trials] == [None] * 3
    assert (tried.level, tried.best.error) == ((), None)


@pytest.mark.parametrize(("data", "few"), [(None, True), (LARGE, False)])
def test_few_validation_users_are_said(tiny, tmp_path, data, few):
    changes = {} if data is None else {"data": data}
    results = run(tiny(systems=(NEAR, System("popularity", "popularity")), **changes), tmp_path)
    assert bool(_warned(results, facts.FewValidationUsers)) == few
    (searched,) = _warned(results, facts.Searched)
    assert (searched.users < 100) == few
    assert str(searched).endswith("refitted on all training ratings.")


@pytest.mark.parametrize(("sizes", "uneven"), [((6, 2), True), ((4, 2), False), ((3, 3), False), ((5, 2), True)])
def test_a_budget_is_uneven_beyond_twofold(tiny, tmp_path, sizes, uneven):
    systems = tuple(
        System(name, spelling, tuning=Tuning({parameter: tuple(range(1, size + 1))}, "P@5"))
        for (name, spelling, parameter), size in zip((("near", "knn", "k"), ("liked", "average", "damping")), sizes)
    )
    results = run(tiny(systems=systems), tmp_path)
    assert bool(_warned(results, facts.UnevenBudget)) == uneven
    said = review(tmp_path)
    point = next(point for point in said.items if "wide, large and fair" in point.topic)
    assert ("differ more than twofold" in point.state) == uneven
    assert ("- [!]" in said.markdown()) == bool(point.warning)


@pytest.mark.parametrize(("seconds", "uneven"), [((90.0, 30.0), True), ((50.0, 30.0), False), ((3.0, 1.0), False)])
def test_a_search_that_took_more_than_twice_as_long_is_said_if_it_took_long(tiny, tmp_path, seconds, uneven):
    systems = (NEAR, System("liked", "average", tuning=Tuning({"damping": (1, 9)}, "P@5")))
    line = run(tiny(systems=systems), tmp_path).line
    took = dict(zip(("searches/tiny/near", "searches/tiny/liked"), seconds))
    warnings = tuning_warnings(line, line.units("source")[0], took)
    assert any(isinstance(fact, facts.UnevenBudget) for fact in warnings) == uneven


@pytest.mark.parametrize(("other", "alone"), [("knn(k=5)", True), ("popularity", False), ("random", False)])
def test_one_system_searched_and_another_not_is_said_if_it_has_settings(tiny, tmp_path, other, alone):
    results = run(tiny(systems=(NEAR, System("other", other))), tmp_path)
    assert bool(_warned(results, facts.SearchedAlone)) == alone
    assert ("which favours what was searched" in (tmp_path / "card.md").read_text()) == alone


def test_without_a_search_nothing_is_said(tiny, tmp_path):
    line = run(tiny(), tmp_path).line
    assert tuning_warnings(line, line.units("source")[0]) == []


@pytest.mark.parametrize(("target", "unused"), [("all", False), ("first", True)])
def test_ratings_that_the_search_does_not_use_are_counted(tiny, tmp_path, target, unused):
    results = run(tiny(systems=(NEAR,), decisions={"split": f"temporal(target={target})"}), tmp_path)
    counted = _warned(results, facts.UnusedInSearch)
    assert bool(counted) == unused
    if unused:
        split = splits.temporal(simulate.world(60, 40, 900).ratings, target="first")
        inner = splits.temporal(split.train, target="first")
        assert counted[0].ratings == len(split.train) - len(inner.train) - len(inner.test)


@pytest.mark.parametrize(
    ("decisions", "systems"),
    [
        ({"split": "random(validation=0.2)", "refit": False}, ("popularity", "near")),
        ({"split": "random(validation=0.2)"}, ()),
        ({"refit": False}, ()),
        ({"refit": False, "searched": True}, ("popularity", "near")),
    ],
)
def test_validation_ratings_that_nothing_learns_from_are_counted(tiny, tmp_path, decisions, systems):
    tuning = Tuning({"factors": (2,)}, "P@5") if decisions.get("searched") else None
    stops = System("stops", "ials(epochs=2)", tuning=tuning)
    decisions = {name: value for name, value in decisions.items() if name != "searched"}
    others = (System("popularity", "popularity"), System("near", "knn(k=5)"))
    results = run(tiny(systems=(stops, *others), decisions=decisions), tmp_path)
    left = _warned(results, facts.NotLearnedFrom)
    assert [fact.systems for fact in left] == ([systems] if systems else [])
    if systems:
        (split,) = splits.apply(simulate.world(60, 40, 900).ratings, "random(validation=0.2)")
        inner = splits.random(split.joined.train, train=0.8)
        assert left[0].ratings == len(inner.test if tuning else split.validation)


@pytest.mark.parametrize(("method", "suggested"), [("temporal", True), ("random", False)])
def test_the_newest_are_suggested_for_given_parts_in_the_order_of_time(tiny, tmp_path, method, suggested):
    (split,) = splits.apply(simulate.world(60, 40, 900).ratings, method)
    files = {part: str(write(ratings, tmp_path / f"{part}.csv")) for part, ratings in zip(("train", "test"), split)}
    for name, validation in (("usual", "like the test"), ("stated", "temporal(train=0.8)")):
        decisions = {"split": "predefined", "validation": validation}
        results = run(tiny(data=(Source("given", **files),), systems=(NEAR,), decisions=decisions), tmp_path / name)
        assert bool(_warned(results, facts.NewestForValidation)) == (suggested and name == "usual")
        (searched,) = _warned(results, facts.Searched)
        assert searched.validation == ("a random" if name == "usual" else "the newest") + " fifth of training"


TIED = Ratings.of([1] * 9 + [2] * 9 + [3] * 9, [*range(9)] * 3, [5, 3, 4] * 9, times=[0, 1, 2, 3, 4, 5, 6, 7, 7] * 3)


@pytest.mark.parametrize(
    ("split", "same"),
    [
        ("temporal(train=0.7)", True),
        ("temporal(train=0.7, target=random)", False),
        ("per_user(train=0.7, which=last)", True),
        ("random(train=0.7)", False),
        ("random(train=0.7, seed=3)", True),
        ("leave_out(l=1, which=last)", True),
    ],
)
def test_repetitions_of_the_same_split_are_training_seeds(tiny, tmp_path, split, same):
    results = run(tiny(decisions={"split": split}, repetitions=2), tmp_path)
    seeds, sentences = _warned(results, facts.TrainingSeeds), " ".join(results.sentences("tiny"))
    assert bool(seeds) == same
    assert ("new splits and seeds" in sentences) != same
    assert ("training seeds on the same split" in sentences) == same
    assert ("2 training seeds on the same split" in (tmp_path / "card.md").read_text()) == same
    artifacts = results.line.artifacts
    for stage in ("models", "runs"):
        keys = {
            name: {artifacts[f"{stage}/tiny/repetition-{k}/{name}"].key for k in (1, 2)} for name in ("near", "random")
        }
        assert (len(keys["near"]) == 1) == (same or "target=random" in split)  # computed once: training is the same
        assert len(keys["random"]) == 2
    assert str(Results(tmp_path)) == str(results)


def test_ties_at_the_cut_make_new_splits(tiny, tmp_path):
    file = write(TIED, tmp_path / "tied.csv")
    decisions = {"split": "leave_out(l=1, which=last)", "metrics": ("P@5",)}
    results = run(tiny(data=(Source("tied", file=str(file)),), decisions=decisions, repetitions=4), tmp_path / "out")
    assert not _warned(results, facts.TrainingSeeds)


def test_given_parts_are_repeated_only_if_a_system_draws(tiny, tmp_path):
    (split,) = splits.apply(simulate.world(60, 40, 900).ratings, "random")
    files = {part: str(write(ratings, tmp_path / f"{part}.csv")) for part, ratings in zip(("train", "test"), split)}
    given = {"data": (Source("given", **files),), "decisions": {"split": "predefined"}, "repetitions": 2}
    assert _warned(run(tiny(**given), tmp_path / "out"), facts.TrainingSeeds)[0].random == ("random",)
    with pytest.raises(CranfieldError, match="would all be the same"):
        tiny(**given, systems=(System("near", "knn(k=5)"),))


def test_an_audit_opens_validation_and_refit_and_counts_the_searches(tiny, tmp_path):
    systems = (NEAR, System("popularity", "popularity"))
    vary = {"refit": [True, False], "validation": ["like the test", "random(train=0.5)"]}
    planned = plan_audit(tiny(systems=systems), tmp_path, vary=vary)
    assert planned.to_make["searches"] == 2  # a search does not depend on the refit
    assert planned.to_make["trainings"] == 4 + 3  # popularity does not depend on the validation part of a refit
    assert "searches         2 to make" in str(planned)
    assert "to make: 2 searches, " in planned.estimate
    with pytest.raises(CranfieldError, match="refit changes nothing"):
        plan_audit(tiny(), tmp_path, vary={"refit": [True, False]})


def test_a_plan_tells_the_time_of_searches(tiny, tmp_path):
    said = str(plan(tiny(systems=(NEAR,)), tmp_path / "out"))
    assert "searches    1 to make" in said
    assert said.count("tiny/near: ") == 2  # the search and the training
