from __future__ import annotations

import pytest

from cranfield._errors import CranfieldError
from cranfield.experiments import System, Tuning, diff, run, show
from cranfield.experiments.results import Results
from cranfield.experiments.stages import RUNS, SCORES, SPLITS


def test_a_folder_tells_what_was_run_what_is_there_and_the_verdict(tiny, tiny_folder):
    text = str(show(tiny_folder))
    assert "popularity, random and near on tiny: random 80/20" in text
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
