"""A run does what a user would do by hand, and no more of it than is needed."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import cranfield as cf
from cranfield import simulate
from cranfield._errors import (
    CranfieldError,
    CranfieldWarning,
    ImpossibleSplitError,
    InputError,
    MissingExtraError,
    SettingError,
)
from cranfield.cli import main
from cranfield.experiments import Decisions, Results, Source, System, plan, run
from cranfield.experiments.presets import PRESETS
from cranfield.splits import apply
from cranfield.store.store import Store


def _made(out):
    """Return what the last run made, by the log."""
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    last = log[[k for k, one in enumerate(log) if one["did"] == "started"][-1] :]
    return {one["artifact"] for one in last if one["did"] == "made"}


def _exported(out):
    """Return what the last run exported, by the log."""
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    last = log[[k for k, one in enumerate(log) if one["did"] == "started"][-1] :]
    return {one["artifact"] for one in last if one["did"] == "exported"}


def _stages(out):
    return {name.split("/")[0] for name in _made(out)}


def _whole(frame):
    return frame.filter(pl.col("fold").is_null()).drop("data", "repetition", "fold")


def _options(decisions):
    """Return the options of `recommend`."""
    return {**decisions.serving.as_dict(), **decisions.ranking.as_dict()}


def _by_hand(ratings, decisions, systems, seed):
    """Return scores and comparison of one split, by the functions that users call."""
    (split,) = apply(cf.filters.apply(ratings, decisions.filters, seed=seed), decisions.split, seed=seed)
    runs = cf.recommend(split, systems, seed=seed, **_options(decisions))
    test = split.test
    if decisions.min_ratings:
        test = test.keep((split.train.user_counts >= decisions.min_ratings)[test.users])
    return cf.measure(runs, test, train=split.train, **decisions.measuring.as_dict())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lists": "condensed", "metrics": ("P@5", "AP", "Tau"), "coverage": "reduced"},
        {
            "filters": ("k_core(k=8)",),
            "split": "temporal(train=0.7)",
            "min_ratings": 6,
            "undefined": "leave out",
            "metrics": ("P@5", "nDCG@10"),
        },
        {"relevant": "one", "nonrelevant": 20, "metrics": ("Recall@5", "RR")},
        {
            "average": "weighted(by=judged)",
            "significance": "permutation",
            "fill": "popularity",
            "candidates": "test",
            "metrics": ("P@10", "nDCG@10"),
        },
        {
            "metrics": ("P@10", "nDCG@10"),
            "average": "geometric(form=adjusted, epsilon=0.01)",
            "significance": "log_student(epsilon=0.01)",
            "baseline": "near",
        },
        {"average": "median", "significance": "sign", "metrics": ("nDCG@10", "ItemCoverage@10"), "keep_seen": True},
    ],
)
def test_the_results_are_those_of_the_functions_called_by_hand(tiny, tmp_path, changes):
    decisions = Decisions(**changes)
    experiment = tiny(decisions=decisions, seed=5)
    results = run(experiment, tmp_path / "out")
    ratings = simulate.world(60, 40, 900).ratings.compact()
    scores = _by_hand(ratings, decisions, {one.name: one.spelling for one in experiment.systems}, seed=5)
    assert_frame_equal(_whole(results.averages()), scores.frame(decisions.averaging))
    comparison = cf.compare(scores, seed=5, **{**decisions.comparing.as_dict(), **decisions.tested.as_dict()})
    assert_frame_equal(_whole(results.comparisons()), comparison.frame(detail=True))
    beside = "" if decisions.tested == decisions.averaging else decisions.average
    comparison = replace(comparison, trained_once=("random",), beside=beside)
    assert results.sentences("tiny") == comparison.verdict
    assert results.card()["results"]["tiny"]["sentences"] == comparison.verdict
    assert "random draws at random and was trained once" in " ".join(comparison.verdict)
    found = results.findings("tiny")
    np.testing.assert_array_equal(found.scores.values, scores.values)


def test_folds_and_repetitions_are_averaged_user_by_user(tiny, tmp_path):
    experiment = tiny(decisions={"split": "k_fold(k=3)", "min_ratings": 0}, repetitions=2, seed=3)
    results, decisions = run(experiment, tmp_path / "out"), experiment.decisions
    ratings = simulate.world(60, 40, 900).ratings.compact()
    values: dict[tuple[str, str], dict[object, list[float]]] = {}
    for seed in (3, 4):
        for split in apply(ratings, "k_fold(k=3)", seed=seed):
            runs = cf.recommend(split, ["popularity"], seed=seed, **_options(decisions))
            scores = cf.measure(runs, split.test, train=split.train, **decisions.measuring.as_dict())
            for row in scores.per_user().iter_rows(named=True):
                values.setdefault((row["system"], row["metric"]), {}).setdefault(row["user"], []).append(
                    row["value"] or 0.0
                )
    averages = results.averages()
    for (system, metric), users in values.items():
        mean = np.mean([np.mean(one) for one in users.values()])
        row = averages.filter(
            (pl.col("system") == system) & (pl.col("metric") == metric) & pl.col("fold").is_null()
        ).row(0, named=True)
        assert row["mean"] == pytest.approx(mean, abs=1e-12)
        assert row["lists"] == len(users)
    apart = averages.filter(pl.col("fold").is_not_null())
    assert apart.select("repetition", "fold").unique().height == 6
    assert results.comparisons().filter(pl.col("fold").is_not_null()).height == 6 * 3 * 2
    comparison = results.findings("tiny").comparison
    assert comparison is not None
    assert set(comparison.frame(detail=True)["method"]) == {"crossed"}
    assert averages.filter(pl.col("fold").is_null())["spread"].is_not_null().all()
    assert apart["spread"].is_null().all()
    assert comparison.verdict[-1].startswith("Between 2 repetitions (new splits and seeds) the standard deviation")
    assert results.sentences("tiny") == results.card()["results"]["tiny"]["sentences"] == comparison.verdict


@pytest.mark.parametrize("average", ["urisk(baseline=popularity, alpha=2)", "standardised", "weighted(by=train)"])
def test_an_average_of_all_systems_is_what_the_file_says_it_is(tiny, tiny_folder, average):
    results = run(tiny(decisions={"average": average}), tiny_folder)
    found = results.findings("tiny")
    averages = results.averages().pivot("metric", index="system", values="mean")
    np.testing.assert_allclose(averages[:, 1:].to_numpy(), found.scores.average(average, by="user"))
    assert found.comparison is not None
    np.testing.assert_allclose(found.comparison.averages, found.scores.average(average, by="user"))


def test_a_second_run_makes_nothing(tiny, tiny_folder):
    files = {path: path.stat().st_mtime_ns for path in (tiny_folder / "runs").rglob("*.parquet")}
    run(tiny(), tiny_folder)
    assert _made(tiny_folder) == set()
    assert {path: path.stat().st_mtime_ns for path in (tiny_folder / "runs").rglob("*.parquet")} == files


COMPARED = {"experiment", "results", "card"}
MEASURED = {"scores", *COMPARED}
RANKED = {"runs", "judged", *MEASURED}
TRAINED = {"splits", "models", *RANKED}
RUN = [
    ({"title": "Another"}, {"experiment", "card"}),
    ({"metrics": ("P@5",)}, MEASURED),
    ({"average": "weighted(by=judged)"}, COMPARED),
    ({"fill": "popularity"}, RANKED),
    ({"relevant": "one"}, RANKED),
    ({"seed": 7}, TRAINED),
    ({"filters": ("k_core(k=8)",)}, {"data", *TRAINED}),
]
PLANNED = [
    ({"threshold": 3}, MEASURED),
    *(({name: value}, COMPARED) for name, value in (
        ("significance", "sign"), ("coverage", "reduced"), ("undefined", "leave out"), ("correction", "none"))),
    *(({name: value}, RANKED) for name, value in (
        ("length", "all"), ("min_ratings", 9), ("sample", 30), ("candidates", "test"), ("lists", "condensed"),
        ("keep_seen", True), ("nonrelevant", 5), ("unrated", 5))),
]  # fmt: skip
"""Changes that only the slow tests run as well; a quick one makes a plan of each."""


def _changed(tiny, changes):
    own = {key: value for key, value in changes.items() if key in ("title", "seed")}
    return tiny(**own, decisions={key: value for key, value in changes.items() if key not in own})


def _planned(experiment, folder):
    return {task.stage for task in plan(experiment, folder).tasks if task.state != "kept"}


@pytest.mark.parametrize(("changes", "made"), PLANNED)
def test_a_plan_makes_only_what_depends_on_a_change(tiny, tiny_folder, changes, made):
    assert _planned(_changed(tiny, changes), tiny_folder) == made


@pytest.mark.parametrize(
    ("changes", "made"), [*RUN, *(pytest.param(*change, marks=pytest.mark.slow) for change in PLANNED)]
)
def test_a_change_makes_only_what_depends_on_it(tiny, tiny_folder, changes, made):
    changed = _changed(tiny, changes)
    assert _planned(changed, tiny_folder) == made
    run(changed, tiny_folder)
    # Stages after an unchanged result are not run again.
    assert _stages(tiny_folder) <= made
    assert ("models" in _stages(tiny_folder)) == ("models" in made)
    assert _planned(changed, tiny_folder) == set()


def test_going_back_to_an_earlier_experiment_finds_what_it_made(tiny, tiny_folder):
    def files():
        paths = (path for path in tiny_folder.rglob("*") if path.is_file() and ".cranfield" not in path.parts)
        return {path: path.read_bytes() for path in paths if path.name != "log.jsonl"}

    changes = [{}, {"fill": "popularity"}, {"split": "k_fold(k=2)"}]
    seen = [files()]
    for change in changes[1:]:
        run(tiny(decisions=change), tiny_folder)
        seen.append(files())
    for change, before in zip(changes, seen):
        results = run(tiny(decisions=change), tiny_folder)
        assert _made(tiny_folder) == set()
        assert files() == before
        assert results.finished
        assert results.experiment == tiny(decisions=change)


def test_a_further_system_trains_only_that_one_and_one_less_leaves_no_file(tiny, tiny_folder):
    more = tiny(systems=(*tiny().systems, System("average", "average")))
    run(more, tiny_folder)
    trained = {name for name in _made(tiny_folder) if name.startswith(("models", "runs"))}
    assert trained == {"models/tiny/average", "runs/tiny/average"}
    run(tiny(), tiny_folder)
    assert _stages(tiny_folder) == set()  # everything is in the store
    assert not (tiny_folder / "runs" / "tiny" / "average.parquet").exists()


def _harmed(path, harm):
    """Damage a file, and return what it held."""
    before = path.read_bytes()
    if harm == "truncate":
        path.write_bytes(before[: len(before) // 2])
    else:
        path.unlink()
    return before


@pytest.mark.parametrize("harm", ["truncate", "remove"])
def test_damaged_or_missing_files_are_made_anew_as_they_were(tiny, tiny_folder, harm):
    patterns = ["data/**/*.parquet", "splits/**/test.parquet", "runs/**/near.parquet", "scores/*.parquet",
                "results/**/averages.parquet", "card.md", "tables/*.tex"]  # fmt: skip
    paths = [min(tiny_folder.glob(pattern)) for pattern in patterns]
    before = {path: _harmed(path, harm) for path in paths}
    # What is left of a truncated file is kept, since it may be somebody's edit.
    with pytest.warns(CranfieldWarning, match="is kept as") if harm == "truncate" else nullcontext():
        run(tiny(), tiny_folder)
    assert {path: path.read_bytes() for path in paths} == before
    # They are copies of files in the store.
    exported = {name.split("/")[0] for name in _exported(tiny_folder)}
    assert (exported, _made(tiny_folder)) == ({"data", "splits", "runs", "scores", "results", "card"}, set())


@pytest.mark.parametrize("stages", [("data", "models", "judged", "results"), ("splits", "runs", "scores", "card")])
@pytest.mark.parametrize("harm", ["truncate", "remove"])
def test_damaged_artifacts_are_made_anew_as_they_were(tiny, tiny_folder, stages, harm):
    artifacts = run(tiny(), tiny_folder).line.artifacts
    harmed = [next(one for name, one in artifacts.items() if name.split("/")[0] == stage) for stage in stages]
    before = {artifact.path(): _harmed(artifact.path(), harm) for artifact in harmed}
    run(tiny(), tiny_folder)
    assert {path: path.read_bytes() for path in before} == before
    # The artifacts of the stages between them have unchanged inputs.
    assert _made(tiny_folder) == {artifact.name for artifact in harmed}


def test_the_normalised_file_runs_to_the_same_results(tiny_file, tmp_path):
    run(tiny_file, tmp_path / "out")
    run(tmp_path / "out" / "experiment.toml", tmp_path / "again")
    for name in ("card.json", "results/tiny/results.json", "experiment.toml"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_by_default_the_folder_bears_the_name_of_the_file(tiny_file):
    assert run(tiny_file).path == tiny_file.with_suffix("")


@pytest.fixture
def divided(tmp_path):
    """A training and a test file, and a file of ranked lists."""
    ratings = simulate.world(60, 40, 900).ratings
    (split,) = apply(ratings, "random(train=0.6)", seed=2)
    cf.write(split.train, tmp_path / "train.csv")
    cf.write(split.test, tmp_path / "test.csv")
    (mine,) = cf.recommend(split, {"mine": "knn(k=3)"}, length=20)
    cf.write_run(mine, tmp_path / "mine.tsv")
    text = """
[decisions]
split = "predefined"
[data.films]
train = "train.csv"
test = "test.csv"
[systems]
popularity = "popularity"
mine = { run = "mine.tsv" }
"""
    (tmp_path / "e.toml").write_text(text)
    return tmp_path


def test_data_that_come_divided_and_lists_from_files_are_taken_as_they_are(divided):
    results = run(divided / "e.toml")
    split = cf.splits.predefined(cf.read(divided / "train.csv"), cf.read(divided / "test.csv"))
    runs = [
        *cf.recommend(split, ["popularity"], **_options(Decisions())),
        cf.read_run(divided / "mine.tsv", name="mine"),
    ]
    scores = cf.measure(runs, split.test, train=split.train, **Decisions().measuring.as_dict())
    assert_frame_equal(_whole(results.averages()), scores.frame(by="user"))
    told, whole = results.card()["data"]["films"], simulate.world(60, 40, 900).ratings
    assert (told["users"], told["items"], told["ratings"]) == (60, 40, 900)
    assert told["density"] == cf.describe(whole).density
    assert told["fingerprints"] == {"train": split.train.fingerprint, "test": split.test.fingerprint}
    assert {"the systems and their hyper-parameters", "where the data are available"} <= set(results.missing())


def test_ranks_in_a_file_are_places_unless_the_experiment_closes_their_gaps(divided):
    lists = pl.read_csv(divided / "mine.tsv", separator="\t").select("user", "item", "rank")
    lists.filter(pl.col("rank") % 3 == 0).write_csv(divided / "mine.tsv", separator="\t")
    text, test = (divided / "e.toml").read_text(), cf.read(divided / "test.csv")
    values = []
    for option, gaps in (("", "keep"), (", gaps = 'close'", "close"), ("", "keep")):
        (divided / "e.toml").write_text(text.replace('"mine.tsv" }', f'"mine.tsv"{option} }}'))
        found = _whole(run(divided / "e.toml").averages()).filter(pl.col("system") == "mine").select("metric", "mean")
        measured = cf.measure({"mine": cf.read_run(divided / "mine.tsv", gaps=gaps)}, test)
        assert_frame_equal(found, measured.frame().select("metric", "mean"))
        values.append(found["mean"].to_list())
    assert values[0] == values[2] != values[1]


def test_lists_from_a_file_that_cannot_be_meant_are_refused_or_warned_of(divided):
    lists = pl.read_csv(divided / "mine.tsv", separator="\t")
    twin = "\ntwin = { run = 'twin.tsv' }\n"
    (divided / "e.toml").write_text((divided / "e.toml").read_text() + twin)
    lists.write_csv(divided / "twin.tsv", separator="\t")
    assert "Warning: mine and twin hold the same lists" in run(divided / "e.toml").sentences("films")[-1]
    lists.with_columns(item=pl.format("item_{}", "item")).write_csv(divided / "twin.tsv", separator="\t")
    with pytest.raises(InputError, match=r"twin.tsv: no item of this run is in the test set.* they differ by a prefix"):
        run(divided / "e.toml")


@pytest.mark.parametrize("way", [run, plan])
def test_lists_from_a_file_are_looked_at_before_anything_is_trained(divided, way):
    lists = pl.read_csv(divided / "mine.tsv", separator="\t")
    lists.with_columns(item=pl.format("item_{}", "item")).write_csv(divided / "mine.tsv", separator="\t")
    with pytest.raises(InputError, match=r"mine.tsv: no item of this run is in the test set"):
        way(divided / "e.toml")
    assert not list(divided.glob("e/models/*"))
    assert "models/films/popularity" not in Store(divided / "e").took()


@pytest.mark.parametrize("way", [run, plan])
def test_strict_makes_warnings_of_lists_from_a_file_errors_before_training(divided, way, monkeypatch):
    copy = "\ntwin = { run = 'mine.tsv' }\n"
    (divided / "e.toml").write_text((divided / "e.toml").read_text() + copy)
    monkeypatch.chdir(divided)
    with pytest.raises(InputError, match=r"mine and twin hold the same lists.*; fix it, or leave strict=True"):
        way("e.toml", strict=True)
    assert "models/films/popularity" not in Store(divided / "e").took()
    way("e.toml")
    with pytest.raises(SystemExit) as stop:
        main(["run", "e.toml", "--strict", *(["--dry-run"] if way is plan else [])])
    assert stop.value.code == 2


def test_a_changed_file_is_noticed(divided):
    run(divided / "e.toml")
    lines = (divided / "mine.tsv").read_text().splitlines()
    (divided / "mine.tsv").write_text("\n".join(lines[:-30]) + "\n")
    run(divided / "e.toml")
    assert _stages(divided / "e") == {"judged", "scores", "results", "card"}
    ratings = (divided / "train.csv").read_text().splitlines()
    (divided / "train.csv").write_text("\n".join(ratings[:-5]) + "\n")
    run(divided / "e.toml")
    assert _stages(divided / "e") == {"data", "splits", "models", "runs", "judged", "scores", "results", "card"}


def test_a_pipe_is_refused_since_an_experiment_reads_its_files_again(divided, piped):
    (divided / "mine.tsv").unlink()
    pipe = piped(b"ann x 1\n")
    pipe.rename(divided / "mine.tsv")
    with pytest.raises(InputError, match=r"systems.mine: .*mine.tsv: this is a pipe"):
        run(divided / "e.toml")


def test_a_file_that_is_not_there_is_told_before_anything_starts(divided):
    (divided / "mine.tsv").unlink()
    with pytest.raises(InputError, match=r"systems.mine: .*mine.tsv: there is no such file; fix its path"):
        run(divided / "e.toml")
    assert not (divided / "e").exists()


def test_a_file_inside_an_archive_and_a_folder_of_parts_are_read(divided):
    import zipfile

    plain = run(divided / "e.toml", divided / "plain")
    with zipfile.ZipFile(divided / "both.zip", "w") as archive:
        for name in ("train.csv", "test.csv"):
            archive.write(divided / name, f"films/{name}")
    (divided / "mine").mkdir()
    rows = (divided / "mine.tsv").read_text().splitlines()
    (divided / "mine" / "part-0").write_text("\n".join(rows[:300]) + "\n")
    (divided / "mine" / "part-1").write_text("\n".join(rows[300:]) + "\n")
    text = (divided / "e.toml").read_text().replace('"mine.tsv"', '"mine"')
    for name in ("train.csv", "test.csv"):
        text = text.replace(f'"{name}"', f'"both.zip/films/{name}"')
    (divided / "e.toml").write_text(text)
    assert_frame_equal(run(divided / "e.toml", divided / "packed").averages(), plain.averages())


def test_pairs_in_both_parts_are_refused_or_dropped_and_told(divided):
    twice = (divided / "test.csv").read_text().splitlines()[1]
    with (divided / "train.csv").open("a") as file:
        file.write(twice + "\n")
    with pytest.raises(ImpossibleSplitError, match="drop them with overlap=test"):
        run(divided / "e.toml")
    assert not (divided / "e" / "runs").exists()
    text = (divided / "e.toml").read_text()
    (divided / "e.toml").write_text(text.replace('"predefined"', '"predefined(overlap=test)"'))
    card = run(divided / "e.toml").card()
    assert card["data"]["films"]["ratings"] == 900
    assert card["data"]["films"]["notes"] == ["1 pairs were in more than one part; kept in test only"]


def test_a_known_dataset_is_taken_as_it_was_published_or_split(tmp_path, monkeypatch):
    from cranfield import datasets

    monkeypatch.setenv("CRANFIELD_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(1)
    (tmp_path / "coat").mkdir()
    for name, share in (("train", 0.4), ("test", 0.2)):
        table = rng.integers(1, 6, (30, 25)) * (rng.random((30, 25)) < share)
        np.savetxt(tmp_path / "coat" / f"{name}.ascii", table, fmt="%d")
    datasets.fetch("coat", from_path=tmp_path / "coat", verify=False)
    train, test = datasets.load_pair("coat")
    text = "systems = ['popularity', 'random']\n[data.coat]\ndataset = 'coat'\n[decisions]\nsplit = '{}'\n"
    (tmp_path / "e.toml").write_text(text.format("predefined(overlap=test)"))
    card = run(tmp_path / "e.toml").card()
    assert card["data"]["coat"]["fingerprints"]["test"] == test.fingerprint
    assert card["data"]["coat"]["citation"] is not None
    # The same folder, now split by cranfield: only the published training part is used.
    (tmp_path / "e.toml").write_text(text.format("random(train=0.5)"))
    card = run(tmp_path / "e.toml").card()
    assert card["data"]["coat"]["fingerprints"] == {"ratings": train.fingerprint}
    assert not (tmp_path / "e" / "data" / "coat" / "test.parquet").exists()
    assert plan(tmp_path / "e.toml").seconds == 0


def test_ids_as_text_and_as_numbers_meet(divided):
    for name in ("train.csv", "test.csv"):
        text = (divided / name).read_text().splitlines()
        rows = [text[0], *(f"u{line}" if name == "train.csv" else line for line in text[1:])]
        (divided / name).write_text("\n".join(rows) + "\n")
    # The parts have no user in common, so nobody can be measured.
    with pytest.raises(CranfieldError, match=r"none has a training rating; .* both parts need the same user ids"):
        run(divided / "e.toml")


def test_a_temporal_split_without_times_is_refused_before_any_training(tmp_path):
    (tmp_path / "r.csv").write_text("user,item,rating\n" + "".join(f"{u},{i},5\n" for u in range(9) for i in range(9)))
    (tmp_path / "e.toml").write_text("[decisions]\nsplit = 'temporal'\n[data.r]\nfile = 'r.csv'\n")
    with pytest.raises(ImpossibleSplitError, match="temporal needs times"):
        run(tmp_path / "e.toml")
    assert not (tmp_path / "e" / "runs").exists()


def test_a_system_whose_library_is_missing_is_told_before_any_training(tiny, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "numba", None)
    experiment = tiny(systems=(System("popularity", "popularity"), System("wrmf", "wrmf")))
    with pytest.raises(MissingExtraError, match=r"cranfield\[recommend\]"):
        run(experiment, tmp_path / "out")
    assert not (tmp_path / "out" / "runs").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"decisions": Decisions(significance="permutation(method=foo)")}, "method='foo' is not one of exact"),
        ({"assess": {"scenarios": ["ratingz"]}}, "did you mean 'ratings'?"),
        ({"assess": {"samples": "x"}}, "samples='x' is not a whole number"),
        ({"decisions": Decisions(split="random(train=1.5)")}, "train=1.5 is not a share"),
    ],
)
def test_a_setting_that_cannot_be_is_told_before_any_training(tiny, tmp_path, changes, said):
    with pytest.raises(SettingError, match=re.escape(said)):
        run(tiny(**changes), tmp_path)
    assert not (tmp_path / "runs").exists()


def test_that_nobody_is_left_in_some_repetition_is_told_before_any_training(tiny, tmp_path):
    world = (Source("tiny", simulate="world(users=12, items=30, ratings=60)"),)
    experiment = tiny(data=world, repetitions=2, decisions={"split": "random(train=0.9)", "sample": 1})
    for call in (run, plan):
        with pytest.raises(SettingError, match=r"decisions: min_ratings, sample: none of the"):
            call(experiment, tmp_path / call.__name__)
    assert not (tmp_path / "run" / "runs").exists()
    # Also if the ratings were divided in an earlier run.
    run(tiny(data=world, repetitions=2, decisions={"split": "random(train=0.9)"}), tmp_path / "kept")
    with pytest.raises(SettingError, match=r"decisions: min_ratings, sample: none of the"):
        plan(experiment, tmp_path / "kept")


def test_one_system_is_measured_and_the_missing_test_is_named(tiny, tmp_path):
    results = run(tiny(systems=(System("popularity", "popularity"),)), tmp_path)
    assert results.comparisons().is_empty()
    assert results.sentences("tiny")[0].startswith("P@10: popularity has 0.")
    assert "a statistical test" in results.missing()


def test_what_holds_among_common_users_is_found_once_and_not_for_every_fold(tiny, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr("cranfield.comparisons.comparing._shortfall", lambda *given: calls.append(given) or {})
    run(tiny(decisions={"split": "k_fold(k=2)", "significance": "student"}), tmp_path)
    # The rehearsal before training compares as well, with fewer lists.
    assert len([scores for scores, *_ in calls if scores.n_lists > 30]) == 1


def test_several_data_sets_are_kept_apart(tiny, tiny_folder):
    two = tiny(data=(*tiny().data, Source("other", simulate="world(users=50, items=30, ratings=700, seed=3)")))
    alone = Results(tiny_folder).sentences("tiny")
    results = run(two, tiny_folder)
    assert results.data == ("tiny", "other")
    assert results.sentences("tiny") == alone
    assert results.averages()["data"].unique(maintain_order=True).to_list() == ["tiny", "other"]
    first, second = (line for line in str(results).splitlines() if line.startswith(("tiny: ", "other: ")))
    assert (first, second) == (f"tiny: {alone[0]}", f"other: {results.sentences('other')[0]}")


def test_an_assessment_is_read_from_the_folder_as_it_was_found(tiny, tiny_folder):
    asked = {"samples": 2, "scenarios": ["ratings", "users"], "sizes": [0.5]}
    experiment = tiny(assess=asked)
    results = run(experiment, tiny_folder)
    read = results.assessment("tiny")
    (part,) = results.measured("tiny")
    made = cf.assess(
        part.judged,
        None,
        list(experiment.decisions.metrics),
        threshold=4,
        train=part.train,
        significance="student",
        **asked,
    )
    assert (read.systems, read.metrics, read.averages) == (made.systems, made.metrics, made.averages)
    assert read.verdict == made.verdict
    np.testing.assert_array_equal(read.whole, made.whole)
    for study in ("robustness", "power", "curves", "correlation", "groups", "advice", "samples"):
        assert_frame_equal(read.frame(study), made.frame(study))
    told = results.card()["results"]["tiny"]
    assert told["assessed"]
    assert results.sentences("tiny") == told["sentences"] + told["assessed"]
    assert "On the metrics:" in (tiny_folder / "card.md").read_text()
    frame = pl.read_parquet(tiny_folder / "results" / "tiny" / "assess-robustness.parquet")
    assert set(frame["metric"]) == {"P@10", "nDCG@10"}
    run(tiny(assess={**asked, "scenarios": ["ratings"]}), tiny_folder)
    assert _stages(tiny_folder) == {"experiment", "assess", "card"}
    assert run(tiny(), tiny_folder).assessment("tiny") is None
    assert not (tiny_folder / "results" / "tiny" / "assess-robustness.parquet").exists()


def test_a_report_is_made_once_and_goes_with_its_results(tiny, tiny_folder, tmp_path):
    def report(results, folder):
        with (tmp_path / "calls").open("a") as calls:
            calls.write("called\n")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "report.html").write_text(str(results))
        return [folder / "report.html"]

    page = tiny_folder / "report.html"
    assert run(tiny(), tiny_folder, report=report).pages == [page]
    run(tiny(), tiny_folder, report=report)
    assert (tmp_path / "calls").read_text().count("called") == 1
    run(tiny(decisions={"threshold": 3}), tiny_folder, report=report)
    assert (tmp_path / "calls").read_text().count("called") == 2
    assert str(run(tiny(), tiny_folder, report=report)) == page.read_text()
    assert (tmp_path / "calls").read_text().count("called") == 2
    assert run(tiny(), tiny_folder).pages == []
    assert not page.exists()


def test_a_seed_that_is_given_counts_instead(tiny, tmp_path):
    assert run(tiny(), tmp_path, seed=9).experiment == replace(tiny(), seed=9)


@pytest.mark.slow
def test_the_starting_configuration_of_the_paper_on_movielens(real_data, tmp_path):
    experiment = replace(
        PRESETS["canamares2020"].experiment,
        data=(Source("movielens", file=str(real_data("ml-1m.parquet"))),),
        systems=(System("kNN", "knn(k=100)"), System("popularity", "popularity")),
    )
    results = run(experiment, tmp_path)
    found = {(row["system"], row["metric"]): row["mean"] for row in _whole(results.averages()).iter_rows(named=True)}
    # Table 2 of the paper prints .416 and .452 for kNN.
    assert found["kNN", "P@10"] == pytest.approx(0.416, abs=0.006)
    assert found["kNN", "nDCG(gain=binary)@10"] == pytest.approx(0.452, abs=0.006)


@pytest.fixture(scope="module")
def trained_in_turn(tiny, tmp_path_factory):
    """An experiment with systems that draw, and the folder of a run that trains one after the other."""
    experiment = tiny(
        decisions={"fill": "random"},
        systems=tuple(System(name, name) for name in ("random", "knn(k=5)", "puresvd(factors=3)")),
    )
    folder = tmp_path_factory.mktemp("jobs") / "one"
    run(experiment, folder, jobs=1)
    return experiment, folder


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_systems_trained_side_by_side_leave_the_same_bytes(trained_in_turn, tmp_path, monkeypatch, threads):
    experiment, one = trained_in_turn
    monkeypatch.setattr(cf.settings, "threads", threads)
    steps = []

    @contextmanager
    def stages(what, count=1):
        yield lambda: steps.append(what)

    run(experiment, tmp_path / "two", jobs=2, stages=stages)
    files = [path.relative_to(one) for path in one.rglob("*") if path.is_file()]
    differ = {"log.jsonl", ".cranfield/lock", ".cranfield/process"}
    for file in (file for file in files if file.as_posix() not in differ):
        assert (tmp_path / "two" / file).read_bytes() == (one / file).read_bytes(), file
    assert steps.count("Training") == steps.count("Ranking") == 3
    run(experiment, tmp_path / "two", jobs=2)
    assert _made(tmp_path / "two") == set()


def test_the_number_of_jobs_is_checked_first(tiny, tmp_path):
    with pytest.raises(SettingError, match="jobs=0"):
        run(tiny(), tmp_path / "out", jobs=0)
    assert not (tmp_path / "out").exists()
