"""Hyper-parameters that an experiment file asks to be searched."""

from __future__ import annotations

import json
import sys

import polars as pl
import pytest

from cranfield import simulate
from cranfield._errors import MissingExtraError, SettingError
from cranfield.experiments import Decisions, Range, System, Tuning, plan, run, search
from cranfield.experiments.stages import searches
from cranfield.experiments.stages.splits import split_of
from cranfield.splits import apply

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
        assert frame.rows() == found.frame().drop("seconds").rows()


def test_the_test_part_is_not_looked_at(tiny, tmp_path, monkeypatch):
    seen = []
    true = searches.search
    monkeypatch.setattr(searches, "search", lambda data, *a, **k: seen.append(data) or true(data, *a, **k))
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
        "tuned: the best of 6 by nDCG@5 on a fifth of the training part; as stated: popularity"
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
    with pytest.raises(SettingError, match=r"systems.liked: searched on a fifth of the training part: nobody has 34"):
        run(tiny(systems=systems, decisions={"min_ratings": most}), tmp_path)
