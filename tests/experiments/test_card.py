from __future__ import annotations

import json
import re

import polars as pl
import pytest

import cranfield as cf
from cranfield import simulate
from cranfield.experiments import Decisions, Source, System, run
from cranfield.experiments.card import checklist, relevance_text
from cranfield.experiments.stages.documents import paragraph


@pytest.fixture(scope="module")
def results(tiny, tmp_path_factory):
    experiment = tiny(
        title="A & B <i>",
        decisions=Decisions(filters=("min_ratings(user=9)",), split="k_fold(k=2)", min_ratings=2),
        notes={"tuning": "50 % by hand"},
        seed=4,
    )
    return run(experiment, tmp_path_factory.mktemp("card") / "out")


def test_the_card_tells_decisions_versions_seeds_data_coverage_and_parameters(results):
    card = json.loads((results.path / "card.json").read_text())
    assert card["decisions"] == {**results.experiment.decisions.as_dict(), "threshold": 4.0}
    assert card["versions"]["cranfield"] == cf.__version__
    assert (card["seed"], card["folds"]) == (4, 2)
    kept = cf.filters.apply(simulate.world(60, 40, 900).ratings, ["min_ratings(user=9)"])
    about = cf.describe(kept)
    data = card["data"]["tiny"]
    assert data["fingerprints"] == {"ratings": kept.fingerprint}
    assert (data["users"], data["items"], data["ratings"], data["density"]) == (
        about.users, about.items, about.ratings, about.density,
    )  # fmt: skip
    assert data["filters"][0]["effect"]["ratings"] == [900, about.ratings]
    assert [one["train"] + one["test"] for one in card["splits"]["tiny"]] == [about.ratings] * 2
    assert any("leakage in time" in note for note in card["splits"]["tiny"][0]["notes"])
    assert card["systems"]["near"]["parameters"]["k"] == 5
    assert card["systems"]["near"]["parameters"]["similarity"] == "cosine"
    whole = results.averages().filter(pl.col("fold").is_null())
    for row in whole.iter_rows(named=True):
        assert card["coverage"]["tiny"][row["system"]]["users"] == row["coverage"]
    assert len(card["results"]["tiny"]["p"]) == 6 * 3


def test_the_markdown_holds_the_same_and_escapes_what_the_user_wrote(results):
    text = (results.path / "card.md").read_text()
    assert text.startswith("# A & B \\<i\\>\n")
    for heading in ("Decisions", "Data", "Effect of the filters", "Splits", "Systems", "Coverage", "Comparisons",
                    "Versions", "Notes", "Checklist"):  # fmt: skip
        assert f"\n## {heading}\n" in text
    for name in results.experiment.decisions.as_dict():
        assert name.replace("_", "\\_") in text
    for sentence in results.sentences("tiny"):
        assert sentence.split(":")[0] in text


def test_the_paragraph_for_a_paper_is_latex(results):
    text = (results.path / "card.tex").read_text()
    card = json.loads((results.path / "card.json").read_text())
    assert (
        f"divided by 2-fold cross-validation (seed 4); each test part has {_either(card, 'test')} ratings of " in text
    )
    assert f"{_either(card, 'test_users')} users. " in text
    assert r"We show 95 \% intervals that hold for all pairs of a metric at once, as corrected p-values do. " in text
    assert "near (k=5, similarity=cosine" in text
    assert (
        "tested by a paired permutation test, two-sided, at $\\alpha$ = 0.05, with the max-$|$t$|$ correction of"
        in text
    )
    assert r"35 users, 40 items, 757 ratings, density 54.07\%" in text
    # Every special character is escaped, in users' text and in ours.
    assert re.search(r"(?<!\\)[%#&_]", text) is None
    assert "AP@100 and RR@100 (relevant from 4 (P, Recall, AP, RR); nDCG: gain = rating)" in text


def _either(card: dict, name: str) -> str:
    first, last = sorted(split[name] for split in card["splits"]["tiny"])
    return f"{first}" if first == last else f"{first} to {last}"


def test_users_without_a_value_count_0_except_by_metrics_where_0_is_a_result(results):
    card = json.loads((results.path / "card.json").read_text())
    assert "users for whom a metric is undefined count as 0. " in paragraph(card)
    card["decisions"]["metrics"] = ["P@10", "AntiRR@10"]
    said = {item.topic: item.reported for item in checklist(card)}
    assert said["users for whom a metric is undefined"] == "they count as 0, but are left out by AntiRR@10"
    assert "users for whom a metric is undefined count as 0, but are left out by AntiRR@10. " in paragraph(card)


def test_the_coverage_is_at_the_depth_of_the_deepest_metric_and_says_so(results):
    text = (results.path / "card.md").read_text()
    for heading in ("places filled@100", "unjudged@100", "items in the data recommended"):
        assert heading in text
    deepest = results.averages().filter(pl.col("fold").is_null() & (pl.col("metric") == "nDCG@100"))
    for row in deepest.iter_rows(named=True):
        coverage = results.card()["coverage"]["tiny"][row["system"]]
        assert (coverage["filled"], coverage["unjudged"]) == (row["filled"], row["unjudged"])


def test_nothing_in_the_results_tells_the_time_or_the_place(results, tmp_path):
    for path in results.path.rglob("*"):
        if path.is_file() and path.name != "log.jsonl" and path.suffix in (".json", ".md", ".tex", ".toml", ".csv"):
            assert str(tmp_path) not in path.read_text(), path


def test_what_is_missing_is_named_and_nothing_else(tiny, tmp_path):
    ratings = simulate.world(60, 40, 900).ratings
    cf.write(ratings, tmp_path / "r.csv")
    file = Source("mine", file=str(tmp_path / "r.csv"))
    poor = run(tiny(data=(file,), systems=(System("p", "popularity"),)), tmp_path / "poor")
    assert set(poor.missing()) == {
        "where the data are available",
        "how the hyper-parameters were chosen, without the test part",
        "a statistical test",
        "the p-values, not only whether they are below a level",
        "more than one set of ratings",
    }
    assert "5 of 18 are missing." in (tmp_path / "poor" / "card.md").read_text()
    rich = tiny(data=(file, *tiny().data), notes={"data": "example.org", "tuning": "by hand"})
    assert run(rich, tmp_path / "rich").missing() == []
    assert "Nothing is missing." in (tmp_path / "rich" / "card.md").read_text()


def test_what_makes_an_item_relevant_is_said_by_data_where_it_differs():
    both = {"metrics": ["P@10", "nDCG@10"]}
    one = {"decisions": both, "thresholds": {"films": 4.0}}
    assert relevance_text(one) == "relevant from 4 (P); nDCG: gain = rating"
    two = {"decisions": {"metrics": ["P@10"]}, "thresholds": {"films": 4.0, "clicks": 1.0}}
    assert relevance_text(two) == "films: relevant from 4, clicks: relevant from 1"
