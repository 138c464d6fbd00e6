from __future__ import annotations

import pytest

from cranfield._errors import CranfieldError
from cranfield.experiments import Decisions, System, Tuning, diff, run, show
from cranfield.experiments.results import Results
from cranfield.experiments.stages import RUNS, SCORES, SPLITS


def test_a_folder_tells_what_was_run_what_is_there_and_the_verdict(tiny, tmp_path):
    run(tiny(), tmp_path)
    text = str(show(tmp_path))
    assert "popularity, random and near on tiny: random 80/20" in text
    assert run(tiny(), tmp_path).sentences("tiny")[0] in text
    assert "not reported: how the hyper-parameters were chosen" in text
    frame = show(tmp_path).frame()
    assert frame["seconds"].null_count() == 0
    assert frame.filter(stage="runs")["bytes"].sum() == sum(
        path.stat().st_size for path in (tmp_path / "runs").rglob("*.parquet")
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


def test_what_is_damaged_is_named(tiny, tmp_path):
    run(tiny(), tmp_path)
    (tmp_path / "runs" / "tiny" / "near.parquet").write_bytes(b"")
    (tmp_path / "card.md").unlink()
    found = show(tmp_path)
    assert found.frame().filter("damaged")["artifact"].to_list() == ["runs/tiny/near", "card"]
    assert "missing or damaged: runs/tiny/near, card" in str(found)


def test_an_unfinished_experiment_says_so(tiny, tmp_path):
    results = run(tiny(), tmp_path)
    (results.line.artifacts["card"].home / "record.json").unlink()
    assert "not finished; run the experiment again" in str(show(tmp_path))
    with pytest.raises(CranfieldError, match="not finished"):
        Results(tmp_path).card()


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(CranfieldError, match="it is not the folder of an experiment"):
        show(tmp_path)
    with pytest.raises(CranfieldError, match="it is not the folder of an experiment"):
        show(tmp_path / "no")


def test_a_log_that_was_cut_off_is_read_as_far_as_it_goes(tiny, tmp_path):
    run(tiny(), tmp_path)
    log = tmp_path / "log.jsonl"
    log.write_text(log.read_text()[:-9])
    show(tmp_path)
    log.unlink()
    assert show(tmp_path).frame()["seconds"].null_count() == len(show(tmp_path).frame())


def test_results_of_unknown_data_suggest_the_nearest(tiny, tmp_path):
    with pytest.raises(CranfieldError, match="did you mean 'tiny'"):
        run(tiny(), tmp_path).sentences("tinny")


@pytest.mark.parametrize("artifact", ["results/tiny", "scores/tiny", "card"])
def test_damaged_results_are_never_read(tiny, tmp_path, artifact):
    results = run(tiny(), tmp_path)
    path = results.line.artifacts[artifact].path()
    path.write_bytes(path.read_bytes()[:-5])
    read = {
        "results/tiny": results.averages,
        "scores/tiny": lambda: results.findings("tiny"),
        "card": results.card,
    }[artifact]
    with pytest.raises(CranfieldError, match=r"is missing or damaged; run the experiment again"):
        read()
    show(tmp_path)


def test_what_was_run_is_told_though_its_file_was_changed(tiny, tmp_path):
    run(tiny(), tmp_path)
    path = tmp_path / "experiment.toml"
    path.write_text(path.read_text().replace('lists = "full"', 'lists = "condensed"'))
    assert Results(tmp_path).experiment.decisions.lists == "full"
    assert "missing or damaged: experiment" in str(show(tmp_path))


def test_an_unfinished_experiment_cannot_be_compared(tiny, tmp_path):
    results = run(tiny(), tmp_path)
    (results.line.artifacts["results/tiny"].home / "record.json").unlink()
    with pytest.raises(CranfieldError, match="not finished"):
        diff(tmp_path, tmp_path)


@pytest.mark.parametrize("stage", [RUNS, SCORES, SPLITS])
def test_results_of_an_experiment_that_was_changed_and_not_finished_do_not_count(tiny, tmp_path, monkeypatch, stage):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    run(tiny(), tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(type(stage), "made_of", stop)
        with pytest.raises(KeyboardInterrupt):
            run(tiny(decisions=Decisions(threshold=3), seed=2), tmp_path)
    results = Results(tmp_path)
    assert not results.finished
    for read in (results.averages, results.card, lambda: results.sentences("tiny"), lambda: diff(tmp_path, tmp_path)):
        with pytest.raises(CranfieldError, match="not finished"):
            read()
    assert "P@10: " not in str(show(tmp_path))
    # Back to the first experiment, whose artifacts are still there.
    assert run(tiny(), tmp_path).finished
