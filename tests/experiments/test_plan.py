from __future__ import annotations

import sys

import pytest

from cranfield._errors import CranfieldError
from cranfield.experiments import Decisions, Source, plan, run
from cranfield.experiments.pipeline import Size
from cranfield.recommenders.epochs import EpochModel


def test_a_plan_writes_nothing(tiny, tmp_path):
    found = plan(tiny(), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert {task.state for task in found.tasks} == {"new"}
    assert found.seconds > 0
    assert "runs        3 to make, not made yet" in str(found)
    assert "roughly" in str(found)


def test_after_a_run_there_is_nothing_to_do(tiny, tiny_folder):
    before = sorted(path for path in tiny_folder.rglob("*"))
    assert str(plan(tiny(), tiny_folder)).endswith("nothing to do")
    assert sorted(path for path in tiny_folder.rglob("*")) == before


def test_what_is_damaged_is_to_be_made_with_the_time_it_took(tiny, tiny_folder):
    results = run(tiny(), tiny_folder)
    (tiny_folder / "runs" / "tiny" / "near.parquet").unlink()
    assert {task.name: task.state for task in plan(tiny(), tiny_folder).tasks}["runs/tiny/near"] == "damaged"
    results.line.artifacts["runs/tiny/near"].path().unlink()
    found = plan(tiny(), tiny_folder)
    states = {task.name: task.state for task in found.tasks}
    assert states["runs/tiny/near"] == "damaged"
    assert states["runs/tiny/random"] == "kept"
    assert all(task.seconds is not None for task in found.tasks)
    assert "1 to make, missing or damaged; 2 kept" in str(found)


def test_a_plan_has_the_same_tasks_as_the_run(tiny, tmp_path):
    names = [task.name for task in plan(tiny(repetitions=2), tmp_path / "out").tasks]
    results = run(tiny(repetitions=2), tmp_path / "out")
    assert sorted(names) == sorted(results.artifacts)


def test_ratings_that_do_not_admit_the_split_are_told_by_a_plan(tiny, tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating\n" + "".join(f"{k},{k % 3},4\n" for k in range(9)))
    experiment = tiny(data=(Source("x", file=str(tmp_path / "r.csv")),), decisions={"split": "temporal"})
    with pytest.raises(CranfieldError, match="temporal needs times"):
        plan(experiment, tmp_path / "out")


def test_a_time_is_extrapolated_from_smaller_worlds_of_the_same_shape(monkeypatch):
    module = sys.modules["cranfield.experiments.stages.models"]
    worlds = []
    true = module.simulate.world
    monkeypatch.setattr(module.simulate, "world", lambda *size: worlds.append(size) or true(*size))
    sizes = (Size(200, 100, 4_000), Size(7_000, 5_000, 1_000_000))
    small, large = (module.training_time(Decisions(), "popularity", size) for size in sizes)
    assert worlds == [(200, 100, 4_000), (350, 250, 2_500), (700, 500, 10_000)]
    assert large >= small


def test_the_time_of_a_system_by_epochs_is_that_of_an_epoch_on_a_few_ratings(monkeypatch):
    module = sys.modules["cranfield.experiments.stages.models"]
    timed = []
    monkeypatch.setattr(EpochModel, "seconds_per_epoch", lambda _, small: timed.append(len(small)) or 0.5)
    seconds = module.training_time(Decisions(), "ials(epochs=30)", Size(7_000, 5_000, 1_000_000))
    assert timed == [10_000]
    assert seconds == pytest.approx(0.5 * 30 * 100)


def test_mistakes_are_told_by_a_plan_as_by_a_run(tiny, tmp_path):
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(CranfieldError, match="holds other files"):
        plan(tiny(), tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"split": "random(train=2)"}, r"decisions: split='random\(train=2\)': train=2 is not a share"),
        ({"split": "leave_out(l=1000)"}, "fewer than the 1000 ratings to leave out"),
        (
            {"min_ratings": 1000},
            "nobody has 1000 training ratings, so nobody is served; give min_ratings=34 or less",
        ),
    ],
)
def test_decisions_that_the_data_do_not_admit_are_told_by_a_plan_and_before_any_training(
    tiny, tmp_path, monkeypatch, changes, said
):
    experiment = tiny(decisions={**changes})
    with pytest.raises(CranfieldError, match=said):
        plan(experiment, tmp_path / "out")
    monkeypatch.setattr("cranfield.experiments.stages.models.fit_each", None)
    with pytest.raises(CranfieldError, match=said):
        run(experiment, tmp_path / "out")


def test_a_changed_split_is_tried_by_a_plan_after_a_run_too(tiny, tiny_folder):
    with pytest.raises(CranfieldError, match="train=2 is not a share"):
        plan(tiny(decisions={"split": "random(train=2)"}), tiny_folder)


@pytest.mark.parametrize("size", ["users=x", "users=-3", "users=3, items=2"])
def test_a_world_that_cannot_be_is_told_by_a_plan(tiny, tmp_path, size):
    with pytest.raises(CranfieldError):
        plan(tiny(data=(Source("x", simulate=f"world({size})"),)), tmp_path)
