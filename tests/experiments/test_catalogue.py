"""Items that do not exist, counted in an experiment whose file names a catalogue."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import InputError, SettingError
from cranfield.experiments import Decisions, Experiment, Results, Source, System, plan, run
from cranfield.reports import other_decisions

TRAIN = [("ann", "w"), ("bob", "x"), ("cid", "y"), ("cid", "z")]
TEST = [("ann", "x"), ("bob", "y"), ("cid", "x")]
LISTS = [("ann", "x", 3), ("ann", "ghost", 2), ("bob", "ghost", 2), ("bob", "phantom", 1), ("cid", "x", 1)]


@pytest.fixture
def experiment(tmp_path):
    for name, rows in {"train": TRAIN, "test": TEST}.items():
        pl.DataFrame(rows, schema=["user", "item"], orient="row").write_csv(tmp_path / f"{name}.csv")
    pl.DataFrame(LISTS, schema=["user", "item", "score"], orient="row").write_csv(tmp_path / "written.csv")
    (tmp_path / "items.txt").write_text("w\nx\ny\nz\n")

    def make(**decisions):
        usual = {"split": "predefined", "metrics": ("P@2",), "significance": "student", "catalogue": "items.txt"}
        return Experiment(
            data=(Source("tiny", train="train.csv", test="test.csv"),),
            systems=(System("popular", "popularity"), System("written", run="written.csv")),
            decisions=Decisions(**{**usual, **decisions}),
            base=tmp_path,
        )

    return make


SENTENCE = (
    "written recommends 2 items that are not in the catalogue, such as ghost, phantom: 3 of its 5 recommendations "
    "(60.0%), counted separately from unjudged ones"
)


@pytest.mark.parametrize("catalogue", ["items.txt", "train"])
def test_the_results_the_verdict_and_the_card_count_them(experiment, tmp_path, catalogue):
    run(experiment(catalogue=catalogue), tmp_path / "out")
    results = Results(tmp_path / "out")
    averages = results.averages()
    assert dict(averages.select("system", "nonexistent").rows()) == {"popular": 0, "written": pytest.approx(0.6)}
    assert any(SENTENCE in sentence for sentence in results.sentences("tiny"))
    card = (tmp_path / "out" / "card.md").read_text()
    assert "nonexistent@2" in card
    assert "60.0%" in card


def test_a_strict_run_refuses_given_lists_with_them_also_after_a_run_that_was_not(experiment, tmp_path):
    run(experiment(), tmp_path / "out")
    with pytest.raises(InputError, match="written recommends 2 items that are not in the catalogue"):
        run(experiment(), tmp_path / "out", strict=True)
    run(experiment(catalogue="none"), tmp_path / "out", strict=True)


def test_another_catalogue_measures_anew_and_trains_nothing(experiment, tmp_path):
    run(experiment(), tmp_path / "out")
    (tmp_path / "items.txt").write_text("w\nx\ny\nz\nghost\n")
    states = {task.name: task.state for task in plan(experiment(), tmp_path / "out").tasks}
    assert states["models/tiny/popular"] == states["judged/tiny/written"] == "kept"
    assert states["scores/tiny"] != "kept"


def test_the_folds_of_an_experiment_share_one_sentence(tiny, tmp_path):
    (tmp_path / "items.txt").write_text("an item of another world\n")
    data = (Source("tiny", simulate="world(users=20, items=60, ratings=150)"),)
    decisions = Decisions(split="k_fold(k=2)", significance="student", metrics=("P@5",), catalogue="items.txt")
    results = run(tiny(data=data, decisions=decisions, base=tmp_path), tmp_path / "out")
    said = [sentence for sentence in results.sentences("tiny") if "near recommends items that are not in" in sentence]
    assert len(said) == 1


def test_a_catalogue_that_cannot_be_read_is_refused_before_anything_is_trained(experiment, tmp_path):
    with pytest.raises(InputError, match=r"decisions: catalogue: .*nowhere\.csv"):
        run(experiment(catalogue="nowhere.csv"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_catalogue_stands_in_the_phrase():
    assert "items outside training counted separately" in str(Decisions(catalogue="train"))
    assert "items outside items.csv counted separately" in str(Decisions(catalogue="items.csv"))


def test_lists_of_one_relevant_item_have_no_catalogue():
    with pytest.raises(SettingError, match="needs whole lists"):
        Decisions(relevant="one", catalogue="train")


def test_groups_of_users_and_the_page_have_the_catalogue_of_the_results(experiment, tmp_path):
    (tmp_path / "groups.csv").write_text("user,group\nann,a\nbob,b\ncid,b\n")
    decided = experiment(metrics=("EPC@2", "P@2"), segment=("groups.csv:group",))
    run(decided, tmp_path / "out")
    results = Results(tmp_path / "out")
    kept = results.findings("tiny").scores.values
    (segment,) = results.segments("tiny")
    np.testing.assert_array_equal(segment.averaged.scores.values, kept)
    assert kept[1, 0].tolist() == pytest.approx([1 / 3, 0, 2 / 3])  # of the lists x ghost, ghost phantom, and x
    (part,) = results.measured("tiny")
    shown = [
        variant.values
        for variant in other_decisions(part.judged, part.test, ["EPC@2", "P@2"], lists=["full"], train=part.train)
    ]
    np.testing.assert_array_equal(shown[0], kept[:, 1:])  # EPC only describes lists, so nobody is best by it


@pytest.mark.parametrize(
    ("split", "served"),
    [
        ("random(train=0.6, validation=0.2)", {}),
        ("temporal(train=0.6, new_items=drop)", {}),
        ("strong_generalisation(users=0.3)", {}),
        ("random(train=0.6)", {"sample": 20}),
    ],
)
def test_the_catalogue_of_an_experiment_is_that_of_its_exported_files(tiny, tmp_path, split, served):
    """The vocabulary of a split has items of other parts and other users, too."""
    metrics = ("ItemCoverage@3", "Gini@3", "GiniDiversity@3")
    data = (Source("tiny", simulate="world(users=60, items=240, ratings=900)"),)
    out = tmp_path / "out"
    systems = (System("popularity", "popularity"), System("near", "knn(k=5)"))
    results = run(tiny(data=data, systems=systems, decisions={"split": split, "metrics": metrics, **served}), out)
    test = cf.read(out / "splits/tiny/test.parquet")
    parts = [out / f"splits/tiny/{part}.parquet" for part in ("train", "validation")]
    train = cf.read(pl.concat([pl.read_parquet(part) for part in parts if part.exists()]))
    assert len(train.item_ids) < 178  # those of all ratings
    runs = [out / f"runs/tiny/{name}.parquet" for name in ("popularity", "near")]
    found = cf.measure(runs, test, metrics, train=train).average()
    assert found.ravel().tolist() == pytest.approx(results.averages()["mean"].to_list(), rel=1e-12)
