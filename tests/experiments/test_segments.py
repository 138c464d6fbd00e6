from __future__ import annotations

import shutil

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cranfield as cf
from cranfield.experiments import Results, Source, plan, read_experiment, run


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write an experiment by segments, with its ratings and a file of groups."""
    tmp_path = tmp_path_factory.mktemp("written")
    world = cf.simulate.world(users=60, items=40, ratings=900, seed=1)
    cf.write(world.ratings, tmp_path / "ratings.csv")
    users = world.ratings.user_ids.all.to_list()
    rows = [f"{user},{'young' if place % 3 else 'old'}" for place, user in enumerate(users[:-5])]
    (tmp_path / "users.csv").write_text("user,age\n" + "\n".join(rows) + "\n")
    path = tmp_path / "by.toml"
    path.write_text(
        '[data.mine]\nfile = "ratings.csv"\n[systems]\npopularity = "popularity"\nnear = "knn(k=5)"\n'
        '[decisions]\nsplit = "k_fold(k=2)"\nsegment = ["activity", "users.csv:age", "popularity(groups=2)"]\n'
        'metrics = ["P@10", "nDCG@10"]\nsignificance = "student"\n'
    )
    return path


@pytest.fixture(scope="module")
def done(written, tmp_path_factory):
    """Run it in a folder of its own."""
    path = shutil.copytree(written.parent, tmp_path_factory.mktemp("done") / "copy") / written.name
    run(path)
    return path


@pytest.fixture
def file(written, tmp_path):
    return shutil.copytree(written.parent, tmp_path / "copy") / written.name


def test_an_experiment_has_results_by_segment(done):
    results = Results(done.with_suffix(""))
    said = "\n".join(results.sentences("mine"))
    assert "activity, heavy (" in said
    assert "users.csv:age, young (" in said
    names = [one.segments.names for one in results.segments("mine")]
    assert names == [("new", "light", "heavy"), ("old", "young", "unknown"), ("1", "2")]
    tables = {path.name for path in (done.parent / "by" / "tables").iterdir()}
    assert {"mine-segments.csv", "mine-segments.md", "mine-segment-interactions.csv"} <= tables
    latex = (done.parent / "by" / "tables" / "mine-segments.tex").read_text()
    assert latex.count(r"\caption{Segments on mine: ") == latex.count(r"\label{tab:mine-segments-") == 3
    assert latex.count("by activity") == 1
    assert "by activity" not in (done.parent / "by" / "tables" / "mine-averages.tex").read_text()


def test_only_the_segments_are_made_again_when_their_file_changes(done, tmp_path):
    file = shutil.copytree(done.parent, tmp_path / "copy", symlinks=True) / done.name
    assert {task.state for task in plan(file).tasks} == {"kept"}
    users = file.parent / "users.csv"
    users.write_text(users.read_text().replace("young", "middle"))
    assert {task.stage for task in plan(file).tasks if task.state != "kept"} == {"segments", "card"}


@pytest.mark.parametrize(
    ("segment", "message"),
    [
        ("ages.csv", "decisions: segment: segment='ages.csv' is not a file, a column of the test file or a built-in"),
        ("activity(old=3)", "decisions: activity has no parameter 'old'"),
        (
            "rating",
            "'rating' groups neither users nor items: user .* is in the groups .* and item .*; name",
        ),
    ],
)
def test_a_segment_that_cannot_be_is_refused(file, segment, message):
    file.write_text(file.read_text().replace('"activity", ', f'"{segment}", '))
    with pytest.raises(cf.CranfieldError, match=message):
        plan(file)


def test_periods_need_data_with_times(tiny, tmp_path):
    timeless = (Source("tiny", simulate="world(users=60, items=40, ratings=900, times=false)"),)
    with pytest.raises(cf.SettingError, match=r"segment='period' needs times, and data\.tiny has none"):
        run(tiny(data=timeless, decisions={"segment": "period"}), tmp_path / "out")


def test_one_segment_may_stand_without_a_list(file):
    file.write_text(file.read_text().replace('["activity", "users.csv:age", "popularity(groups=2)"]', '"activity"'))
    assert read_experiment(file).decisions.segment == ("activity",)


def test_results_by_segment_are_read_and_not_made_again(done, monkeypatch):
    from cranfield.experiments.stages import results as stage

    monkeypatch.setattr(stage.Segments, "measured", None)
    results = Results(done.with_suffix(""))
    kept = results.segments("mine")
    said = [sentence for segment in kept for sentence in segment.verdict]
    assert [sentence for sentence in results.sentences("mine") if sentence in said] == said
    home = done.parent / "by" / "results" / "mine"
    for name, frames in {
        "segments": [segment.averages() for segment in kept],
        "segment-comparisons": [segment.frame(detail=True) for segment in kept],
    }.items():
        assert_frame_equal(pl.concat(frames), pl.read_parquet(home / f"{name}.parquet"))
    assert {row["group"] for row in kept[1].as_dict()["interactions"]} == {"old", "young", "unknown"}
    assert "old" in str(kept[1])


def test_the_card_has_the_verdicts_by_segment(done):
    results = Results(done.with_suffix(""))
    said = [sentence for segment in results.segments("mine") for sentence in segment.verdict]
    assert results.card()["results"]["mine"]["segments"] == said
    card = (done.parent / "by" / "card.md").read_text()
    assert "By group:" in card
    assert all(sentence.partition(" (")[0] in card for sentence in said)


def test_repetitions_are_crossed_with_users_in_each_group(file):
    text = (
        file.read_text().replace('split = "k_fold(k=2)"', 'split = "random"').replace("[data", "repetitions = 3\n[data")
    )
    file.write_text(text)
    segments = run(file).segments("mine")
    assert [segment.segments.scores.repetitions.max() for segment in segments] == [2, 2, 2]
    for segment in segments:
        assert all("users crossed with repetitions" in test for test in segment.interactions["test"])
        methods = {
            method for comparison in segment.comparisons.values() for method in comparison.frame(detail=True)["method"]
        }
        assert methods == {"crossed"}
        assert "intervals and tests include the spread between 3 repetitions (users crossed with them)" in segment.notes
        assert segment.averages()["interval"].str.contains("crossed with repetitions").all()


def test_a_column_of_the_data_is_read_as_the_data_are(file):
    rows = (file.parent / "ratings.csv").read_text().splitlines()[1:]
    split = [row.split(",") for row in rows]
    lines = [f"{row[1]};{row[0]};{row[2]};{'odd' if int(row[0]) % 2 else 'even'}" for row in split]
    (file.parent / "ratings.csv").write_text("product;visitor;stars;side\n" + "\n".join(lines) + "\n")
    text = file.read_text().replace(
        'file = "ratings.csv"\n', 'file = "ratings.csv"\nuser = "visitor"\nitem = "product"\nseparator = ";"\n'
    )
    file.write_text(text.replace('["activity", "users.csv:age", "popularity(groups=2)"]', '"side"'))
    (segment,) = run(file).segments("mine")
    assert (segment.segments.of, segment.segments.names) == ("users", ("even", "odd"))


def test_users_are_weighted_by_a_column_of_a_file_beside_the_experiment(file, tmp_path, monkeypatch):
    every = sorted({row.split(",")[0] for row in (file.parent / "ratings.csv").read_text().splitlines()[1:]})
    spend = {user: 1 + place % 7 for place, user in enumerate(every)}
    (file.parent / "spend.csv").write_text("user,spend\n" + "".join(f"{user},{spend[user]}\n" for user in every))
    file.write_text(
        file.read_text().replace("[decisions]\n", '[decisions]\naverage = "weighted(by=spend.csv:spend)"\n')
    )
    monkeypatch.chdir(tmp_path)
    results = run(file)
    findings = results.findings("mine")
    weights = np.array([spend[str(user)] for user in findings.scores.user_ids.ids(np.unique(findings.scores.users))])
    place = findings.scores.metrics.index("nDCG@10")
    values = np.nan_to_num(findings.scores.values[0, place])
    by_user = np.bincount(findings.scores.users, values) / np.bincount(findings.scores.users)
    mean = (weights * by_user[np.unique(findings.scores.users)]).sum() / weights.sum()
    assert findings.comparison.averages[0, place] == pytest.approx(mean)
    assert {task.state for task in plan(file).tasks} == {"kept"}
    (file.parent / "spend.csv").write_text("user,spend\n" + "".join(f"{user},1\n" for user in every))
    assert {task.stage for task in plan(file).tasks if task.state != "kept"} == {"results", "segments", "card"}
    (file.parent / "spend.csv").unlink()
    with pytest.raises(cf.InputError, match=r"spend.csv: it is not a file"):
        run(file)
