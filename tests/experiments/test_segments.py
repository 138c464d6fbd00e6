from __future__ import annotations

import shutil

import pytest

import cranfield as cf
from cranfield.experiments import Decisions, Results, Source, plan, read_experiment, run


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
        ("rating", "user .* is in the groups"),
    ],
)
def test_a_segment_that_cannot_be_is_refused(file, segment, message):
    file.write_text(file.read_text().replace('"activity", ', f'"{segment}", '))
    with pytest.raises(cf.CranfieldError, match=message):
        plan(file)


def test_periods_need_data_with_times(tiny, tmp_path):
    timeless = (Source("tiny", simulate="world(users=60, items=40, ratings=900, times=false)"),)
    with pytest.raises(cf.SettingError, match=r"segment='period' needs times, and data\.tiny has none"):
        run(tiny(data=timeless, decisions=Decisions(segment="period")), tmp_path / "out")


def test_one_segment_may_stand_without_a_list(file):
    file.write_text(file.read_text().replace('["activity", "users.csv:age", "popularity(groups=2)"]', '"activity"'))
    assert read_experiment(file).decisions.segment == ("activity",)
