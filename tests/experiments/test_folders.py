"""What a folder holds (`show`), and what `clean` frees."""

from __future__ import annotations

import pytest

from cranfield._errors import CranfieldError
from cranfield.cli import main
from cranfield.experiments import System, Tuning, clean, diff, plan, run, show
from cranfield.experiments.results import Results, bytes_text
from cranfield.experiments.stages import RUNS, SCORES, SPLITS


def test_a_folder_tells_what_was_run_what_is_there_and_the_verdict(tiny, tiny_folder):
    text = str(show(tiny_folder))
    assert "popularity, random and near on tiny: a random 20 % of ratings as test" in text
    assert run(tiny(), tiny_folder).sentences("tiny")[0] in text
    assert "not reported: how the hyper-parameters were chosen" in text
    frame = show(tiny_folder).frame()
    assert frame["seconds"].null_count() == 0
    assert frame.filter(stage="runs")["bytes"].sum() == sum(
        path.stat().st_size for path in (tiny_folder / "runs").rglob("*.parquet")
    )
    assert not frame["damaged"].any()


def test_searches_stand_before_the_runs_that_they_were_made_for(tiny, tmp_path):
    tuned = System("near", "knn", tuning=Tuning({"k": (2, 5)}))
    run(tiny(systems=(System("popularity", "popularity"), tuned)), tmp_path)
    stages = show(tmp_path).frame()["stage"].unique(maintain_order=True).to_list()
    assert stages == [
        "experiment",
        "data",
        "splits",
        "searches",
        "models",
        "runs",
        "judged",
        "scores",
        "results",
        "card",
    ]


def test_what_is_damaged_is_named(tiny_folder):
    (tiny_folder / "runs" / "tiny" / "near.parquet").write_bytes(b"")
    (tiny_folder / "card.md").unlink()
    found = show(tiny_folder)
    assert found.frame().filter("damaged")["artifact"].to_list() == ["runs/tiny/near", "card"]
    assert "missing or damaged: runs/tiny/near, card" in str(found)


def test_an_unfinished_experiment_says_so(tiny, tiny_folder):
    results = run(tiny(), tiny_folder)
    (results.line.artifacts["card"].home / "record.json").unlink()
    assert "not finished; run the experiment again" in str(show(tiny_folder))
    with pytest.raises(CranfieldError, match="not finished"):
        Results(tiny_folder).card()


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(CranfieldError, match="it is not the folder of an experiment"):
        show(tmp_path)
    with pytest.raises(CranfieldError, match="it is not the folder of an experiment"):
        show(tmp_path / "no")


def test_a_log_that_was_cut_off_is_read_as_far_as_it_goes(tiny_folder):
    log = tiny_folder / "log.jsonl"
    log.write_text(log.read_text()[:-9])
    show(tiny_folder)
    log.unlink()
    assert show(tiny_folder).frame()["seconds"].null_count() == len(show(tiny_folder).frame())


def test_results_of_unknown_data_suggest_the_nearest(tiny_folder):
    with pytest.raises(CranfieldError, match="did you mean 'tiny'"):
        Results(tiny_folder).sentences("tinny")


@pytest.mark.parametrize("artifact", ["results/tiny", "scores/tiny", "card"])
def test_damaged_results_are_never_read(tiny, tiny_folder, artifact):
    results = run(tiny(), tiny_folder)
    path = results.line.artifacts[artifact].path()
    path.write_bytes(path.read_bytes()[:-5])
    read = {
        "results/tiny": results.averages,
        "scores/tiny": lambda: results.findings("tiny"),
        "card": results.card,
    }[artifact]
    with pytest.raises(CranfieldError, match=r"is missing or damaged; run the experiment again"):
        read()
    show(tiny_folder)


def test_what_was_run_is_told_though_its_file_was_changed(tiny_folder):
    path = tiny_folder / "experiment.toml"
    path.write_text(path.read_text().replace('lists = "full"', 'lists = "condensed"'))
    assert Results(tiny_folder).experiment.decisions.lists == "full"
    assert "missing or damaged: experiment" in str(show(tiny_folder))


@pytest.mark.parametrize("name", ["data/tiny", "scores/tiny", "results/tiny"])
def test_without_what_a_verdict_is_made_of_there_is_no_verdict(tiny, tiny_folder, name):
    artifact = run(tiny(), tiny_folder).line.artifacts[name]
    for file in artifact.files:
        artifact.path(file).write_bytes(b"damaged")
    said = str(show(tiny_folder))
    assert f"missing or damaged: {name}" in said
    assert "P@10" not in said.split("missing or damaged")[1]


def test_an_unfinished_experiment_cannot_be_compared(tiny, tiny_folder):
    results = run(tiny(), tiny_folder)
    (results.line.artifacts["results/tiny"].home / "record.json").unlink()
    with pytest.raises(CranfieldError, match="not finished"):
        diff(tiny_folder, tiny_folder)


@pytest.mark.parametrize("stage", [RUNS, SCORES, SPLITS])
def test_results_of_an_experiment_that_was_changed_and_not_finished_do_not_count(tiny, tiny_folder, monkeypatch, stage):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(stage), "made_of", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tiny(decisions={"threshold": 3}, seed=2), tiny_folder)
    results = Results(tiny_folder)
    assert not results.finished
    for read in (
        results.averages,
        results.card,
        lambda: results.sentences("tiny"),
        lambda: diff(tiny_folder, tiny_folder),
    ):
        with pytest.raises(CranfieldError, match="not finished"):
            read()
    assert "P@10: " not in str(show(tiny_folder))
    # Back to the first experiment, whose artifacts are still there.
    assert run(tiny(), tiny_folder).finished


def _files(folder):
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in found if path.name not in ("log.jsonl", "process")}


def test_what_only_earlier_experiments_use_is_named_and_freed(tiny, tmp_path):
    alone, out = tmp_path / "alone", tmp_path / "out"
    run(tiny(title="First"), alone)
    run(tiny(title="Second", decisions={"fill": "popularity"}), out)
    run(tiny(title="First"), out)
    before = _files(out)
    spare = clean(out)
    assert _files(out) == before
    assert set(spare.frame()["experiment"]) == {"Second"}
    assert "runs/tiny/near" in spare.frame()["artifact"].to_list()
    assert not any(name.startswith(("data", "splits", "models")) for name in spare.frame()["artifact"])
    assert "can be freed; free=True frees them" in str(spare)
    freed = clean(out, free=True)
    assert freed.frame().equals(spare.frame())
    assert sum(map(len, before.values())) - sum(map(len, _files(out).values())) > freed.frame()["bytes"].sum()
    # Only what the current experiment would have made by itself is left.
    assert {path.relative_to(out): content for path, content in _files(out).items()} == {
        path.relative_to(alone): content for path, content in _files(alone).items()
    }
    assert str(plan(tiny(title="First"), out)).endswith("nothing to do")
    assert "nothing to free" in str(clean(out))


def test_what_no_experiment_uses_any_more_is_named_as_it_was_made(tiny, tmp_path):
    from cranfield.experiments import Source

    data = tmp_path / "ratings.csv"
    rows = [f"{user},{item},{1 + (user * item) % 5}" for user in range(30) for item in range(20) if (user + item) % 3]
    for count in (len(rows), len(rows) - 9):
        data.write_text("user,item,rating\n" + "\n".join(rows[:count]) + "\n")
        run(tiny(data=(Source("mine", file=str(data)),)), tmp_path / "out")
    found = clean(tmp_path / "out").frame()
    assert set(found["experiment"]) == {"no experiment"}
    assert "data/mine" in found["artifact"].to_list()


def test_an_experiment_that_is_not_finished_keeps_what_it_has(tiny, tmp_path, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("cranfield.experiments.stages.lists.measure", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tiny(), tmp_path)
    before = _files(tmp_path)
    # The folder of the scores was created, but nothing was written into it.
    assert clean(tmp_path, free=True).frame()["bytes"].to_list() == [0]
    assert _files(tmp_path) == before


@pytest.mark.parametrize("file", ["current.json", "roots"])
def test_nothing_is_freed_where_the_current_experiment_is_not_known(tiny, tiny_folder, file):
    run(tiny(decisions={"threshold": 3}), tiny_folder)
    home = tiny_folder / ".cranfield"
    if file == "roots":
        newest = max((home / "roots").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        newest.write_text("half")
    else:
        (home / file).unlink()
    before = _files(tiny_folder)
    with pytest.raises(CranfieldError, match="does not say which experiment is the current one; run that one again"):
        clean(tiny_folder, free=True)
    assert _files(tiny_folder) == before


def test_the_command_says_what_it_would_free_and_frees_it_with_yes(tiny, tiny_folder, capsys):
    run(tiny(title="Second", decisions={"threshold": 3}), tiny_folder)
    before = _files(tiny_folder)
    main(["clean", str(tiny_folder)])
    assert "can be freed" in capsys.readouterr().out
    assert _files(tiny_folder) == before
    main(["clean", str(tiny_folder), "--force"])
    assert "were freed" in capsys.readouterr().out
    assert len(_files(tiny_folder)) < len(before)
    with pytest.raises(SystemExit) as stop:
        main(["clean", str(tiny_folder / "no")])
    assert stop.value.code == 2
    assert "it is not the folder of an experiment" in capsys.readouterr().err


def _stopped(tiny, folder, stage="scores"):
    """Run an experiment and stop it where the file of a stage is written and its record is not; return what is left."""
    from cranfield.store.records import Record

    write = Record.write

    def stop(home, name, *rest):
        if name.startswith(stage):
            raise KeyboardInterrupt
        return write(home, name, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Record, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tiny(), folder)
    (left,) = [path for path in (folder / ".cranfield" / "store").glob("*/*") if not (path / "record.json").exists()]
    return left


def test_what_a_stopped_run_left_half_made_is_named_and_freed(tiny, tmp_path):
    left = _stopped(tiny, tmp_path)
    size = sum(path.stat().st_size for path in left.rglob("*") if path.is_file())
    assert size
    assert clean(tmp_path).frame().rows() == [("no experiment", f"half made/{left.name[:12]}", size)]
    assert left.is_dir()
    assert clean(tmp_path, free=True).frame().height == 1
    assert not left.exists()
    run(tiny(), tmp_path)
    assert clean(tmp_path).frame().is_empty()


def test_a_folder_that_a_run_is_writing_is_not_called_half_made(tiny, tmp_path):
    from cranfield.store.store import open_store

    left = _stopped(tiny, tmp_path)
    with open_store(tmp_path):
        assert clean(tmp_path).frame().is_empty()
        with pytest.raises(CranfieldError, match="is in use by another run"):
            clean(tmp_path, free=True)
    assert left.is_dir()


def test_only_folders_named_by_a_key_are_half_made(tiny, tmp_path):
    left = _stopped(tiny, tmp_path)
    mine = left.parent / "notes"
    elsewhere = tmp_path / "elsewhere"
    for folder in (mine, elsewhere):
        folder.mkdir()
        (folder / "own.txt").write_text("mine")
    other = left.parent.parent / ("ab" if left.parent.name != "ab" else "cd")
    other.mkdir(exist_ok=True)
    (other / left.name).symlink_to(elsewhere, target_is_directory=True)
    clean(tmp_path, free=True)
    assert (mine / "own.txt").read_text() == (elsewhere / "own.txt").read_text() == "mine"
    assert not left.exists()


def test_a_changed_file_of_a_freed_artifact_is_not_taken_for_half_of_one(tiny, tiny_folder):
    changed = next(path for path in (tiny_folder / ".cranfield" / "store").rglob("*.md"))
    run(tiny(decisions={"threshold": 3}), tiny_folder)
    changed.write_text("my notes")
    clean(tiny_folder, free=True)
    assert clean(tiny_folder, free=True).frame().is_empty()
    assert changed.read_text() == "my notes"


@pytest.mark.parametrize(("count", "text"), [(20, "20 B"), (999, "999 B"), (1_234_567, "1.2 MB")])
def test_a_number_of_bytes_is_readable(count, text):
    assert bytes_text(count) == text
