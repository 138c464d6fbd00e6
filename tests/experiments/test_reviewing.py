"""The reviewer's list is filled from the record, and names what is missing."""

from __future__ import annotations

import pytest

import cranfield as cf
from cranfield import SettingError
from cranfield.experiments import Results, System, Tuning, review, run


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory):
    systems = (
        System("popularity", "popularity"),
        System("near", "knn", tuning=Tuning({"k": (3, 5)}, metric="P@5")),
        System("ours", "ease(l2=50)"),
    )
    home = tmp_path_factory.mktemp("review") / "out"
    run(tiny(systems=systems), home)
    return home


def _reported(checked, asked):
    return next(item for item in checked.items if asked in item.topic)


def test_every_area_of_the_line_is_covered(folder):
    areas = list(dict.fromkeys(item.area for item in review(folder).items))
    assert areas == ["data", "split", "users", "lists", "candidates", "systems", "tuning", "metrics", "averages",
                     "tests", "code", "seeds", "hardware", "time"]  # fmt: skip


def test_the_tuning_of_every_system_is_told_with_ranges_and_budget(folder):
    checked = review(folder)
    near = _reported(checked, "how near was tuned").reported
    assert near.startswith("k of 3, 5: 2 trials by P@5 on a random fifth of training (")
    assert "users), best knn(k=" in near
    assert ", refitted; " in near
    assert _reported(checked, "how popularity was tuned").reported == "it sets no hyper-parameters"
    assert _reported(checked, "how ours was tuned").reported is None
    assert "with the budget of the other systems" in _reported(checked, "how ours was tuned").remedy


def test_the_record_tells_metrics_code_seeds_hardware_and_time(folder):
    checked = review(folder)
    assert "nDCG:" in _reported(checked, "definitions of the metrics").reported
    assert "cranfield" in _reported(checked, "the code").reported
    assert _reported(checked, "every seed").reported.startswith("0; ")
    assert "threads" in _reported(checked, "the hardware").reported
    assert "in all" in _reported(checked, "how long it took").reported
    assert _reported(checked, "which items a list may hold").reported == (
        "all items of the data, without those seen in training"
    )


def test_all_that_the_card_checks_is_in_the_list(folder):
    asked = {item.topic for item in review(folder).items}
    chosen = "how the hyper-parameters were chosen, without the test part"
    assert {entry["asked"] for entry in Results(folder).card()["checklist"]} - {chosen} <= asked


def test_markdown_and_latex_name_what_is_missing(folder):
    checked = review(folder)
    assert checked.missing
    markdown, latex = checked.markdown(), checked.latex()
    assert f"{len(checked.missing)} of {len(checked.items)} points are missing" in markdown
    assert markdown.count("- [ ] ") == len(checked.missing)
    assert latex.count(r"\textbf{missing:") == len(checked.missing)
    assert r"p{0.5\linewidth}" in latex


def test_a_note_fills_what_only_the_author_knows(tiny, tmp_path):
    notes = {"tuning": "by hand", "code": "in the appendix", "hardware": "a laptop"}
    run(tiny(notes=notes), tmp_path / "out")
    checked = review(tmp_path / "out")
    assert _reported(checked, "how near was tuned").reported == "by hand"
    assert _reported(checked, "the code").reported.startswith("in the appendix; cranfield")
    assert _reported(checked, "the hardware").reported == "a laptop"


def test_the_files_of_a_foreign_experiment_tell_what_they_can():
    train = cf.Ratings.of(["a", "a", "b"], ["x", "y", "x"], times=[1, 5, 2])
    test = cf.Ratings.of(["a", "b"], ["z", "y"], times=[3, 4])
    checked = review(train, test, {"mine": {"a": ["z", "y"]}})
    assert _reported(checked, "size and density of the training part").reported.startswith(
        "2 users, 2 items, 3 ratings"
    )
    assert "older than a training rating" in _reported(checked, "overlap, leakage").reported
    assert "mine: lists of up to 2 items for 50.0% of the test users" in _reported(checked, "coverage").reported
    assert _reported(checked, "every seed").remedy == "the files do not say; state it in the paper"


def test_the_record_of_a_split_tells_how_it_was_made(tmp_path):
    ratings = cf.Ratings.of([user for user in range(9) for _ in range(9)], [*range(9)] * 9)
    filtered = cf.filters.apply(ratings, ["min_ratings(user=2)"])
    cf.splits.write(cf.splits.random(filtered, train=0.7, seed=3), tmp_path)
    checked = review(tmp_path / "train.parquet", tmp_path / "test.parquet")
    assert _reported(checked, "how training and test were divided").reported.startswith("split.random(train=0.7")
    assert "min_ratings" in _reported(checked, "filters").reported
    assert len({item.topic for item in checked.items}) == len(checked.items)


def test_what_is_no_experiment_is_refused(tmp_path):
    with pytest.raises(SettingError, match="is not the folder of an experiment"):
        review(tmp_path / "nothing")
