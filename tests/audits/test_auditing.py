"""An experiment with opened decisions, from the file to the answers."""

from __future__ import annotations

import json
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield import CranfieldError, CranfieldWarning
from cranfield.audits import read_audit
from cranfield.audits.auditing import plan_audit, with_audit
from cranfield.audits.setup_runs import SetupRuns
from cranfield.audits.universes import compute
from cranfield.experiments import Decisions, Experiment, Results, Source, System, run
from cranfield.experiments.pipeline import Pipeline
from cranfield.experiments.stages import DATA
from cranfield.store.store import open_store

VARY = {
    "split": ["random(train=0.5)", "random(train=0.8)"],
    "lists": ["full", "condensed"],
    "cutoff": [5, 10],
    "average": ["mean", "weighted"],
}


def computed(experiment, folder):
    """Compute the universes without the statistics, which take longest."""
    with open_store(folder) as store:
        line = Pipeline(experiment, store, (DATA,))
        line.go()
        setup_runs = SetupRuns(line)
        setup_runs.go(lambda: None)
        return compute(setup_runs.enumeration, setup_runs.lists)


def made(folder):
    """Return the artifacts that the last run made."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    last = max(place for place, line in enumerate(lines) if line["did"] == "started")
    return [line["artifact"] for line in lines[last:] if line["did"] == "made"]


@pytest.fixture(scope="module")
def audited(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited") / "out"
    return cf.audit(tiny(), folder, vary=VARY), folder


def test_every_universe_is_the_experiment_with_its_decisions(tiny, tmp_path, audited):
    audit, _ = audited
    words = {"split": "random(train=0.8)", "lists": "condensed", "cutoff": "5", "average": "weighted"}
    (cell,) = (cell for cell in range(audit.grid.n_cells) if words.items() <= audit.grid.words(cell).items())
    decisions = Decisions(
        split="random(train=0.8)", min_ratings=1, lists="condensed", metrics="P@5", average="weighted(by=judged)"
    )
    averages = run(tiny(decisions=decisions), tmp_path / "out").averages()
    assert audit.averages[:, audit.grid.universe[cell]].tolist() == averages["mean"].to_list()


def test_data_filters_and_parameters_of_systems_are_those_of_the_experiment(tiny, tmp_path):
    sources = [Source(f"world {n}", simulate=f"world(users={n}, items=40, ratings=900)") for n in (60, 50)]
    vary = {"filters": [[], ["min_ratings(user=12)"]], "average": ["mean", "standardised"]}
    opened = tiny(data=tuple(sources), audit={"vary": vary, "systems": {"near": {"k": [5, 2]}}})
    found = computed(opened, tmp_path / "audited")
    assert found.grid.n_cells == found.grid.n_universes == 16
    words = {"data": "world 50", "filters": "min_ratings(user=12)", "average": "standardised", "systems.near.k": "2"}
    (cell,) = (cell for cell in range(found.grid.n_cells) if words.items() <= found.grid.words(cell).items())
    alone = tiny(
        data=(sources[1],),
        systems=(System("popular", "popularity"), System("near", "knn(k=2)")),
        decisions=Decisions(
            split="random(train=0.5)", min_ratings=1, filters=["min_ratings(user=12)"], average="standardised"
        ),
    )
    expected = run(alone, tmp_path / "alone").averages().filter(metric="P@10")["mean"].to_list()
    assert found.averages[:, found.grid.universe[cell]].tolist() == pytest.approx(expected)


def test_the_starting_point_is_the_experiment(audited):
    audit, folder = audited
    start = audit.averages[:, audit.grid.universe[audit.grid.start]]
    assert start.tolist() == Results(folder).averages().filter(metric="P@10")["mean"].to_list()


def test_an_experiment_that_is_run_without_its_audit_says_so(tiny, tmp_path):
    with pytest.warns(CranfieldWarning, match="is ignored"):
        run(tiny(audit={}), tmp_path / "out")


def test_the_answers_are_files_that_read_back(audited):
    audit, folder = audited
    names = {path.name for path in (folder / "audit").iterdir()}
    assert names == {"universes.parquet", "influence.csv", "flips.csv", "audit.json"}
    assert read_audit(folder / "audit").verdict == audit.verdict


def test_a_second_audit_makes_nothing(tiny, tmp_path):
    for _ in range(2):
        cf.audit(tiny(), tmp_path / "out", vary={"cutoff": [5, 10], "split": VARY["split"]})
    assert made(tmp_path / "out") == []


def test_making_the_lists_and_answering_have_clocks_of_their_own(tiny, tmp_path):
    shown = []

    @contextmanager
    def stages(what, steps=1):
        shown.append([what, steps, 0])

        def advance():
            shown[-1][2] += 1

        yield advance

    cf.audit(tiny(), tmp_path / "out", vary={"cutoff": [5, 10], "split": VARY["split"]}, stages=stages)
    assert [stage for stage in shown if "udit" in stage[0]] == [["Lists for the audit", 2, 2], ["Auditing", 1, 1]]


def test_a_further_cut_off_trains_and_ranks_nothing(tiny, tmp_path):
    folder = tmp_path / "out"
    cf.audit(tiny(), folder, vary={"cutoff": [5, 10], "split": VARY["split"]})
    cf.audit(tiny(), folder, vary={"cutoff": [3, 5, 10], "split": VARY["split"]})
    assert {name.split("/")[0] for name in made(folder)} == {"experiment", "audit", "card"}


def test_an_audit_that_was_stopped_goes_on(tiny, tmp_path):
    folder = tmp_path / "out"
    experiment = tiny(audit={"vary": {"split": VARY["split"], "lists": VARY["lists"]}})
    with open_store(folder) as store:
        line = Pipeline(experiment, store, (DATA,))
        store.begin("stopped", "stopped")
        line.go()
        setup_runs = SetupRuns(line)

        def stop() -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            setup_runs.go(stop)
    cf.audit(experiment, folder)
    again = [name for name in made(folder) if name.startswith("models/audit")]
    assert len(again) == 2  # those of the other split; the first split was there already


def test_models_are_trained_once_for_full_and_condensed_lists(audited):
    _, folder = audited
    trained = [name for name in made(folder) if name.startswith("models/")]
    assert len(trained) == 4


def test_a_setup_that_fails_is_shown_with_its_reason(tiny, tmp_path):
    found = computed(tiny(audit={"vary": {"min_ratings": [1, 1000]}}), tmp_path / "out")
    ((options, reason),) = found.grid.invalid
    assert options == (1,)
    assert "nobody has 1000 training ratings" in reason
    assert found.grid.n_cells == 1


def test_a_measurement_that_fails_is_shown_with_its_reason(tiny, tmp_path):
    found = computed(
        tiny(audit={"vary": {"metrics": ["P@10", "RBP(gain=exp)@10"], "threshold": [4, 6]}}), tmp_path / "out"
    )
    assert found.grid.n_cells == 1
    assert {reason.split(" ")[0] for _, reason in found.grid.invalid} == {"gain=exp", "the"}


def test_lists_from_a_file_are_not_measured_beyond_their_end(tiny, tmp_path):
    split = cf.splits.random(cf.simulate.world(60, 40, 900).ratings, train=0.5)
    for name, part in (("train", split.train), ("test", split.test)):
        cf.write(part, tmp_path / f"{name}.csv")
    (listed,) = cf.recommend(split, {"listed": "random"}, length=10)
    cf.write_run(listed, tmp_path / "listed.tsv")
    found = computed(
        tiny(
            data=(Source("tiny", train="train.csv", test="test.csv"),),
            systems=(System("popular", "popularity"), System("listed", run="listed.tsv")),
            decisions=Decisions(split="predefined"),
            audit={"vary": {"cutoff": [5, 10, 20], "lists": ["full", "condensed"]}},
            base=tmp_path,
        ),
        tmp_path / "out",
    )
    assert found.grid.n_cells == 2
    reasons = [reason for _, reason in found.grid.invalid]
    assert sum("so a cut-off of 20 cannot be shown" in reason for reason in reasons) == 1
    assert sum("too short to be condensed" in reason for reason in reasons) == 3


def test_a_starting_point_that_fails_is_an_error(tiny, tmp_path):
    experiment = tiny(decisions=Decisions(threshold=6), audit={"vary": {"threshold": [4, 6]}})
    with pytest.raises(CranfieldError, match="no test rating is"):
        cf.audit(experiment, tmp_path / "out")


def test_any_number_of_threads_gives_the_same_numbers(tiny, tmp_path):
    experiment = tiny(audit={"vary": VARY})
    before = cf.settings.threads
    try:
        results = []
        for threads in (1, 2):
            cf.settings.threads = threads
            results.append(computed(experiment, tmp_path / str(threads)))
    finally:
        cf.settings.threads = before
    assert np.array_equal(results[0].averages, results[1].averages)
    assert np.array_equal(results[0].terms.values, results[1].terms.values)


def test_users_of_two_sets_of_ratings_are_different_users(tiny, tmp_path):
    world = "world(users={}, items=40, ratings=900)"
    data = tuple(Source(name, simulate=world.format(users)) for name, users in (("a", 50), ("b", 60)))
    found = computed(tiny(data=data, audit={"vary": {"cutoff": [5, 10]}}), tmp_path / "out")
    assert found.terms.values.shape[2] == found.terms.users.sum() // 2


def test_an_automatic_threshold_is_that_of_each_set_of_ratings(tiny, tmp_path):
    clicks = tmp_path / "clicks.csv"
    clicks.write_text(
        "user,item\n" + "".join(f"{user},{user * 7 % 11 + item}\n" for user in range(20) for item in range(9))
    )
    data = (*tiny().data, Source("clicks", file=str(clicks)))
    found = computed(tiny(data=data, audit={"vary": {"cutoff": [5, 10]}}), tmp_path / "out")
    assert found.grid.invalid == ()
    assert (found.averages > 0).all()


def test_a_plan_counts_each_training_once(tiny, tmp_path):
    plan = plan_audit(tiny(), tmp_path / "out", vary=VARY)
    assert plan.to_make == {"trainings": 4, "rankings": 8, "judged": 8}
    assert "set-ups          16\n" in str(plan)
    assert not (tmp_path / "out").exists()


def test_what_is_given_counts_instead_of_the_table(tiny):
    experiment = with_audit(tiny(audit={"budget": 9, "preset": "usual"}), preset="measuring")
    assert experiment.audit == {"budget": 9, "preset": "measuring"}


SPLITS = [
    "random(train=0.8)",
    "temporal(target=first)",
    "rolling(windows=3, horizon=40d)",
    "cold_users(left=2)",
    "strong_generalisation",
]


def test_an_audit_crosses_every_kind_of_split(tmp_path):
    start = Experiment(
        data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),),
        systems=(System("popularity", "popularity"), System("near", "knn(k=5)")),
        decisions=Decisions(metrics=("nDCG@10",)),
    )
    audit = cf.audit(start, tmp_path / "out", vary={"split": SPLITS})
    means = dict(zip(SPLITS, audit.averages.T.tolist()))
    assert len(audit.grid.invalid) == 0
    rolled = cf.experiments.run(
        Experiment(data=start.data, systems=start.systems, decisions=start.decisions.with_(split=SPLITS[2])),
        tmp_path / "rolled",
    )
    alone = rolled.averages().filter(pl.col("fold").is_null())
    assert means[SPLITS[2]] == pytest.approx(alone["mean"].to_list())


def test_the_dataset_has_its_share_of_the_variance_like_other_decisions(tiny, tmp_path):
    sources = tuple(Source(f"world {n}", simulate=f"world(users={n}, items=40, ratings=900)") for n in (60, 50))
    vary = {"data": ["world 60", "world 50"], "cutoff": [5, 10]}
    audit = cf.audit(tiny(data=sources), tmp_path / "audited", vary=vary)
    shares = audit.influence().filter(pl.col("answer") == "d_z", pl.col("with_decision").is_null())
    assert set(shares["decision"]) == {"data", "cutoff"}
    assert shares["shapley"].sum() == pytest.approx(1)
    assert any("of the variance" in said and "data" in said for said in audit.sentences())
