"""Searches of hyper-parameters, by themselves and in experiments."""

from __future__ import annotations

import json
import sys

import numpy as np
import polars as pl
import pytest

from cranfield import CranfieldError, Ratings, measure, recommend, simulate, splits
from cranfield._errors import MissingExtraError, SettingError
from cranfield.experiments import Decisions, Range, System, Tuning, plan, run, search
from cranfield.experiments.stages import models
from cranfield.experiments.stages.data import split_of
from cranfield.splits import apply


def _ratings(seed=0):
    draw = np.random.default_rng(seed)
    taste = np.outer(draw.choice([-1, 1], 60), draw.choice([-1, 1], 40))
    user, item = np.nonzero(draw.random((60, 40)) < 1 / (1 + np.exp(1 - 2 * taste)))
    return Ratings.of(user, item, draw.integers(1, 6, len(user)).astype(float))


PARTS = splits.random(_ratings(), train=0.8, validation=0.2, seed=3)


def test_a_grid_tries_every_combination_and_values_are_those_of_measure():
    found = search(PARTS, "knn(q=2)", {"k": [1, 20], "binary": [True, False]}, "P@5", threshold=4)
    assert [one.system for one in found.trials] == [
        f"knn(q=2, k={k}, binary={b})" for k in (1, 20) for b in ("true", "false")
    ]
    for trial in found.trials:
        scores = measure(recommend(PARTS.train, trial.system), PARTS.validation, ["P@5"], threshold=4)
        assert trial.value == pytest.approx(scores.average()[0, 0])
    assert found.best.value == max(one.value for one in found.trials)
    assert "is the best of 4 by P@5" in str(found)
    assert found.frame().columns == ["system", "value", "seconds"]


def test_users_who_are_not_served_do_not_lower_the_value():
    trial = search(PARTS, "knn", {"k": [20]}, "P@5", sample=0.5, seed=3).best
    run = recommend(PARTS.train, trial.system, sample=0.5, seed=3)
    scores = measure(run, PARTS.validation, ["P@5"])
    assert scores.user_coverage[0] < 0.6
    assert trial.value == pytest.approx(scores.average(coverage="reduced")[0, 0])


def test_the_test_part_is_never_looked_at():
    other = splits.Split(PARTS.train, PARTS.test.keep(np.arange(len(PARTS.test)) < 1), PARTS.step, PARTS.validation)
    space = {"k": [1, 5, 20]}
    values = [[one.value for one in search(data, "knn", space, "P@5").trials] for data in (PARTS, other)]
    assert values[0] == values[1]


def test_without_a_validation_part_one_is_set_aside():
    bare = splits.Split(PARTS.train, PARTS.test, PARTS.step)
    assert search(bare, "knn", {"k": [3]}, "P@5").trials[0].value > 0


def test_what_is_stopped_by_ratings_set_aside_is_trained_for_its_best_epochs():
    spelling, space = "mf-pointwise(epochs=60, rate=0.3, negatives=2, patience=3)", {"factors": [4]}
    stopped = search(PARTS.train, spelling, space, "nDCG@10")
    assert 1 <= stopped.best.epochs < 57
    assert stopped.final == f"mf-pointwise(epochs={stopped.best.epochs}, rate=0.3, negatives=2, patience=3, factors=4)"
    again = search(PARTS, spelling, space, "nDCG@10")  # after a refit there is no validation part to stop it either
    assert again.final == f"mf-pointwise(epochs={again.best.epochs}, rate=0.3, negatives=2, patience=3, factors=4)"


def test_trials_by_optuna_are_the_same_for_the_same_seed():
    pytest.importorskip("optuna")
    space = {"k": Range(1, 50), "q": Range(0.1, 5.0, log=True), "similarity": ["cosine", "jaccard"]}
    first, again = (search(PARTS, "knn", space, "P@5", trials=6, seed=4) for _ in range(2))
    assert [one.system for one in first.trials] == [one.system for one in again.trials]
    assert len({one.system for one in first.trials}) > 1


@pytest.mark.parametrize("trials", [None, 4])
def test_a_broken_off_search_goes_on_where_it_was(tmp_path, monkeypatch, trials):
    module = sys.modules["cranfield.experiments.searching"]

    space = {"k": [1, 3, 9, 27]}
    whole = search(PARTS, "knn", space, "P@5", trials=trials)
    path = tmp_path / "search.json"
    calls = []
    real = module.recommend

    def breaks(*arguments, **options):
        calls.append(arguments[1])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    monkeypatch.setattr(module, "recommend", breaks)
    with pytest.raises(KeyboardInterrupt):
        search(PARTS, "knn", space, "P@5", trials=trials, record=path)
    assert len(json.loads(path.read_text())["trials"]) == 1
    resumed = search(PARTS, "knn", space, "P@5", trials=trials, record=path)
    assert [(one.system, one.value) for one in resumed.trials] == [(one.system, one.value) for one in whole.trials]
    assert calls.count(calls[0]) == 1


def test_lower_is_better_where_the_metric_says_so():
    found = search(PARTS, "svd(factors=2, epochs=3)", {"rate": [1e-6, 0.02]}, "RMSE")
    assert found.lower_is_better
    assert found.best.value == min(one.value for one in found.trials)


@pytest.mark.parametrize(
    ("space", "options", "message"),
    [
        ({}, {}, "the space to search is empty"),
        ({"k": Range(1, 9)}, {}, "has no list of values"),
        ({"k": []}, {}, "has no list of values"),
        ({"k": 5}, {}, "k=5 has no list of values"),
        ({"k": 5}, {"trials": 2}, "k=5 has no list of values"),
        ({"k": [0]}, {}, "k=0 of knn is out of range"),
        ({"m": [1]}, {}, "knn has no parameter 'm'"),
        ({"k": [1]}, {"trials": 0}, "trials=0"),
    ],
)
def test_mistakes_are_said(space, options, message):
    with pytest.raises(CranfieldError, match=message):
        search(PARTS, "knn", space, "P@5", **options)


def test_what_is_wrong_is_said_before_anything_is_trained(monkeypatch):
    monkeypatch.setattr(sys.modules["cranfield.experiments.searching"], "recommend", None)
    with pytest.raises(CranfieldError, match="did you mean 'nDCG'"):
        search(PARTS, "knn", {"k": [1]}, "nDGC@5")
    with pytest.raises(CranfieldError, match="k=0 of knn is out of range"):
        search(PARTS, "knn", {"k": [1, 0]})
    with pytest.raises(CranfieldError, match="neither a split nor ratings"):
        search("ratings.csv", "knn", {"k": [1]})


def test_a_record_of_something_else_is_refused(tmp_path):
    path = tmp_path / "search.json"
    search(PARTS, "knn", {"k": [1]}, "P@5", record=path)
    with pytest.raises(CranfieldError, match="another metric"):
        search(PARTS, "knn", {"k": [1]}, "P@10", record=path)
    path.write_text("{")
    with pytest.raises(CranfieldError, match="is not the record of a search"):
        search(PARTS, "knn", {"k": [1]}, "P@5", record=path)
    with pytest.raises(CranfieldError, match="is not a range"):
        Range(3, 1)


GRID = Tuning({"k": (1, 5, 30), "similarity": ("cosine", "pearson")}, "nDCG@5")


def _experiment(tiny, tuning=GRID, **changes):
    systems = (System("popularity", "popularity"), System("tuned", "knn(q=2)", tuning=tuning))
    return tiny(systems=systems, **changes)


def _made(out):
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    last = log[[k for k, one in enumerate(log) if one["did"] == "started"][-1] :]
    return {one["artifact"].split("/")[0] for one in last if one["did"] == "made"}


def test_a_system_is_trained_with_what_the_search_by_hand_finds_best(tiny, tmp_path):
    results = run(_experiment(tiny, decisions={"split": "k_fold(k=2)"}, seed=4), tmp_path)
    for part in results.line.units("part"):
        split = split_of(results.line, part)
        asked = {**Decisions().serving.as_dict(), **Decisions().ranking.as_dict(), "threshold": 4}
        found = search(split, "knn(q=2)", dict(GRID.space), "nDCG@5", seed=4, **asked)
        facts = results.line.artifacts[f"searches/{part.place}/tuned"].facts
        assert (facts["best"], facts["value"], facts["trials"]) == (found.best.system, found.best.value, 6)
        record = results.line.store.find(results.line.artifacts[f"models/{part.place}/tuned"].key)
        assert record.made_of["system"] == found.best.system
        frame = pl.read_parquet(tmp_path / "searches" / f"{part.place}" / "tuned.parquet")
        assert frame.drop("standard_error").rows() == found.frame().drop("seconds").rows()
        assert frame["standard_error"].to_list() == [found.standard_error(trial) for trial in found.trials]


def test_the_test_part_is_not_looked_at(tiny, tmp_path, monkeypatch):
    seen = []
    true = models.search
    monkeypatch.setattr(models, "search", lambda data, *a, **k: seen.append(data) or true(data, *a, **k))
    results = run(_experiment(tiny), tmp_path)
    (split,) = seen
    blind = search(split.train, "knn(q=2)", dict(GRID.space), "nDCG@5", threshold=4, min_ratings=1)
    assert results.line.artifacts["searches/tiny/tuned"].facts["value"] == blind.best.value


def test_a_validation_part_of_the_split_is_what_is_measured(tiny, tmp_path):
    decisions = Decisions(split="random(train=0.6, validation=0.2)")
    results = run(_experiment(tiny, decisions=decisions), tmp_path)
    (found,) = results.card()["systems"]["tuned"]["searches"]
    assert found["validation"] == "the validation part"


def test_the_card_has_what_was_searched_and_found(tiny, tmp_path):
    card = run(_experiment(tiny), tmp_path).card()
    (found,) = card["systems"]["tuned"]["searches"]
    assert found["metric"] == "nDCG@5"
    assert f"k={card['systems']['tuned']['parameters']['k']}" in found["best"]
    assert card["systems"]["popularity"]["searches"] == []
    chosen = next(item for item in card["checklist"] if item["asked"].startswith("how the hyper-parameters"))
    assert chosen["reported"] == (
        "tuned: the best of 6 by nDCG@5 on a random fifth of training (52 users), refitted; as stated: popularity"
    )
    assert "best of 6 settings by nDCG@5" in (tmp_path / "card.tex").read_text()
    assert "## Searches of hyper-parameters" in (tmp_path / "card.md").read_text()


@pytest.mark.parametrize(
    ("changes", "made"),
    [
        ({}, set()),
        ({"decisions": Decisions(metrics=("P@5",))}, {"experiment", "scores", "results", "card"}),
        (
            {"tuning": Tuning({"k": (2,)}, "nDCG@5")},
            {"experiment", "searches", "models", "runs", "judged", "scores", "results", "card"},
        ),
    ],
)
def test_a_change_searches_again_only_if_the_search_depends_on_it(tiny, tmp_path, changes, made):
    run(_experiment(tiny), tmp_path)
    run(_experiment(tiny, **changes), tmp_path)
    assert _made(tmp_path) == made


def test_without_a_metric_the_first_one_of_the_experiment_counts(tiny, tmp_path):
    results = run(_experiment(tiny, Tuning({"k": (1, 5)})), tmp_path)
    assert results.line.artifacts["searches/tiny/tuned"].facts["metric"] == "P@10"


def test_a_search_that_was_broken_off_goes_on_and_leaves_the_same_bytes(tiny, tmp_path, monkeypatch):
    experiment = _experiment(tiny, Tuning({"k": Range(1, 40)}, trials=4))
    run(experiment, tmp_path / "whole")
    module = sys.modules["cranfield.experiments.searching"]
    true, tried = module.recommend, []

    def recommend(split, systems, *arguments, **options):
        if split.train.n_users > 20:  # not the rehearsal
            tried.extend(systems)
            if len(tried) == 3:
                raise KeyboardInterrupt
        return true(split, systems, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(module, "recommend", recommend)
        with pytest.raises(KeyboardInterrupt):
            run(experiment, tmp_path / "out")
        (kept,) = (tmp_path / "out" / ".cranfield" / "unfinished").iterdir()
        assert len(json.loads(kept.read_text())["trials"]) == 2
        run(experiment, tmp_path / "out")
    assert len(tried) == len(set(tried)) + 1
    for path in (tmp_path / "whole").rglob("*"):
        name = path.relative_to(tmp_path / "whole").as_posix()
        if path.is_file() and name not in ("log.jsonl", ".cranfield/process"):
            assert (tmp_path / "out" / name).read_bytes() == path.read_bytes(), name
    assert not (tmp_path / "out" / ".cranfield" / "unfinished").exists()


def test_what_a_search_kept_and_is_damaged_is_left_aside(tiny, tmp_path):
    experiment = _experiment(tiny)
    whole = run(experiment, tmp_path / "whole")
    key = whole.line.artifacts["searches/tiny/tuned"].key
    run(tiny(), tmp_path / "out")
    (tmp_path / "out" / ".cranfield" / "unfinished").mkdir()
    (tmp_path / "out" / ".cranfield" / "unfinished" / f"{key}.json").write_text('{"half')
    assert run(experiment, tmp_path / "out").sentences("tiny") == whole.sentences("tiny")


def test_a_library_that_is_missing_is_told_before_anything_starts(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match="optuna"):
        run(_experiment(tiny, Tuning({"k": Range(1, 9)}, trials=3)), tmp_path / "out")
    assert not (tmp_path / "out" / "data").exists()


def test_a_plan_counts_the_searches(tiny, tmp_path):
    found = {task.name: task for task in plan(_experiment(tiny), tmp_path / "out").tasks}
    assert found["searches/tiny/tuned"].seconds >= 6 * found["models/tiny/tuned"].seconds


def test_that_a_validation_part_leaves_nobody_to_measure_names_the_search(tiny, tmp_path):
    (parts,) = apply(simulate.world(60, 40, 900).ratings, "random(train=0.8)", seed=0)
    most = int(parts.train.user_counts.max())
    systems = (System("liked", "average", tuning=Tuning({"damping": (0, 9)})),)
    with pytest.raises(SettingError, match=r"systems.liked: searched on a random fifth of training: nobody has 34"):
        run(tiny(systems=systems, decisions={"min_ratings": most}), tmp_path)
