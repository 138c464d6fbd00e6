from __future__ import annotations

import polars as pl

import cranfield as cf
from cranfield.experiments import Decisions, Source, System, diff, run
from cranfield.experiments.differences import _ranked
from cranfield.experiments.results import Results


def test_the_same_experiment_twice_has_no_difference(tiny, tiny_folder, tmp_path):
    run(tiny(), tmp_path / "b")
    found = diff(tiny_folder, tmp_path / "b")
    assert found.stated == {}
    assert found.frame()["change"].to_list() == [0.0] * 6
    assert found.verdicts.is_empty()
    assert found.tau == {"tiny": 1.0}
    assert found.verdict == [
        "The two state the same experiment.",
        "On tiny the first metrics give the same order of systems (Kendall's tau 1.00).",
    ]


def test_decisions_seeds_systems_and_data_that_differ_are_named_and_averages_moved(tiny, tiny_folder, tmp_path):
    one = Results(tiny_folder)
    other = run(
        tiny(
            decisions={"threshold": 3, "lists": "condensed"},
            seed=1,
            systems=(System("popularity", "popularity"), System("near", "knn(k=9)"), System("average", "average")),
        ),
        tmp_path / "b",
    )
    found = diff(tiny_folder, tmp_path / "b")
    assert found.stated == {
        "lists": ("full", "condensed"),
        "threshold": ("auto", 3.0),
        "seed": (0, 1),
        "systems.random": ("random", "not there"),
        "systems.near": ("knn(k=5)", "knn(k=9)"),
        "systems.average": ("not there", "average"),
    }
    assert "C1 lists: full → condensed" in str(found)
    assert set(found.frame()["system"]) == {"popularity", "near"}
    for row in found.frame().iter_rows(named=True):
        means = [
            results.averages()
            .filter((pl.col("system") == row["system"]) & (pl.col("metric") == row["metric"]))["mean"]
            .item()
            for results in (one, other)
        ]
        assert [row["before"], row["after"]] == means
        assert row["change"] == means[1] - means[0]


def test_ratings_of_the_same_name_and_other_contents_are_noticed(tiny, tmp_path):
    for name, seed in (("a", 0), ("b", 1)):
        (tmp_path / name).mkdir()
        cf.write(cf.simulate.world(60, 40, 900, seed=seed).ratings, tmp_path / name / "r.csv")
        source = Source("mine", file=str(tmp_path / name / "r.csv"))
        run(tiny(data=(source,)), tmp_path / name / "out")
    assert list(diff(tmp_path / "a" / "out", tmp_path / "b" / "out").stated) == ["ratings of mine"]


def test_a_verdict_that_turns_is_told_though_the_pair_stands_the_other_way_round(tiny, tiny_folder, tmp_path):
    systems = tiny().systems
    run(tiny(systems=systems[::-1], decisions={"alpha": 1e-12}), tmp_path / "b")
    found = diff(tiny_folder, tmp_path / "b")
    assert len(found.verdicts) > 0
    assert set(found.verdicts["better_after"]) == {None}
    assert "→ no difference" in str(found)


def test_other_metrics_still_compare_the_order_of_systems(tiny, tiny_folder, tmp_path):
    run(tiny(decisions={"metrics": "Recall@5"}), tmp_path / "b")
    found = diff(tiny_folder, tmp_path / "b")
    assert found.frame().is_empty()
    assert -1 <= found.tau["tiny"] <= 1
    assert "They measured nothing in common." in str(found)


def test_lower_is_better_where_it_is(tiny, tmp_path):
    decisions = Decisions(metrics="RMSE", lists="condensed")
    run(tiny(decisions=decisions, systems=(System("average", "average"), System("user", "useraverage"))), tmp_path)
    frame = diff(tmp_path, tmp_path).frame().sort("before")
    assert frame["rank_before"].to_list() == [1, 2]


def test_averages_that_differ_by_rounding_alone_share_a_place(tiny, tiny_folder, monkeypatch):
    results = run(tiny(), tiny_folder)
    one = results.averages().filter(pl.col("fold").is_null(), metric="P@10")
    nearly = one.with_columns(mean=pl.Series([0.575, 0.5750000000000001, 0.1]))
    monkeypatch.setattr(results, "averages", lambda: nearly)
    assert _ranked(results)["rank"].to_list() == [1, 1, 3]
