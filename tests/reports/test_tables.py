from __future__ import annotations

import re

import numpy as np
import pytest

import cranfield as cf
from cranfield.comparisons.samples import as_scores
from cranfield.reports.tables import best_first, leaderboard_frame, leaderboard_table

pytestmark = pytest.mark.usefixtures("undrawn")

SYSTEMS = ("a_1", "50 %", "c&d", "{e}")


def test_latex_has_rules_the_best_bold_the_second_underlined_letters_and_the_decisions(make_scores):
    scores = make_scores(systems=SYSTEMS, metrics=("P@5", "RR@10"))
    comparison = cf.compare(scores)
    made = leaderboard_table(scores, comparison).latex()
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert made.count(rule) == 1
    lines = [line for line in made.splitlines() if line.endswith(r"\\")]
    assert len(lines) == 1 + len(SYSTEMS)
    order = np.argsort(-scores.average()[:, 0], kind="stable")
    best, second = (f"{scores.average()[s, 0]:.4f}" for s in order[:2])
    letters = {(row["metric"], row["system"]): row["letters"] for row in comparison.letters().iter_rows(named=True)}
    assert rf"\textbf{{{best}}}$^{{{letters['P@5', SYSTEMS[order[0]]]}}}$" in lines[1]
    assert rf"\underline{{{second}}}$^{{{letters['P@5', SYSTEMS[order[1]]]}}}$" in lines[2]
    caption = next(line for line in made.splitlines() if line.startswith(r"\caption"))
    for decision in (
        "40 users",
        "full lists",
        "relevant from 4",
        "average: mean",
        "without a list count as 0",
        "permutation",
    ):
        assert decision in caption
    for name in (r"a\_1", r"50 \%", r"c\&d", r"\{e\}"):
        assert name in made


def test_markdown_says_the_same(make_scores):
    scores = make_scores(systems=SYSTEMS, metrics=("P@5",))
    made = leaderboard_table(scores, cf.compare(scores)).markdown()
    assert made.startswith("40 users; full lists; relevant from 4")
    assert made.count("**") == 2
    assert made.count("<u>") == 1
    assert made.count("<sup>") == len(SYSTEMS)


def test_the_frame_has_the_places_and_letters_of_every_metric(make_scores):
    scores = make_scores(systems=SYSTEMS, metrics=("P@5", "RR@10"))
    comparison = cf.compare(scores)
    frame = leaderboard_frame(scores, comparison)
    assert frame.drop("place", "letters").equals(scores.frame())
    for row in frame.iter_rows(named=True):
        means = scores.average()[:, scores.metric(row["metric"])]
        assert row["place"] == 1 + np.count_nonzero(means > row["mean"])
    expected = {(row["metric"], row["system"]): row["letters"] for row in comparison.letters().iter_rows(named=True)}
    assert {(row["metric"], row["system"]): row["letters"] for row in frame.iter_rows(named=True)} == expected


def test_without_tests_there_are_no_marks_and_with_a_baseline_daggers(make_scores):
    scores = make_scores(systems=SYSTEMS, metrics=("P@5",))
    made = leaderboard_table(scores)
    assert "<sup>" not in made.markdown()
    assert "letter" not in made.caption
    assert "letters" not in leaderboard_frame(scores).columns
    comparison = cf.compare(scores, baseline=SYSTEMS[0])
    made = leaderboard_table(scores, comparison)
    worse = comparison.frame(detail=True).filter(better=SYSTEMS[0])["system_a"].to_list()
    assert worse
    assert {row[0].text for row in made.rows if row[1].raised == "‡"} == set(worse)
    assert f"† significantly better, ‡ significantly worse than {SYSTEMS[0]}" in made.caption


def test_a_metric_that_was_not_tested_has_no_letters(make_scores):
    scores = make_scores(systems=SYSTEMS, metrics=("P@5", "RR@10"))
    made = leaderboard_table(scores, cf.compare(scores, metrics=["P@5"]))
    assert all(row[1].raised and not row[2].raised for row in made.rows)


def test_where_lower_is_better_the_lowest_is_first_and_bold(make_scores):
    scores = make_scores(systems=SYSTEMS, metrics=("Fallout@5",))
    made = leaderboard_table(scores)
    lowest = int(np.argmin(scores.average()[:, 0]))
    assert made.rows[0][0].text == SYSTEMS[lowest]
    assert made.rows[0][1].best
    places = leaderboard_frame(scores)["place"].to_list()
    assert places[lowest] == 1
    assert max(places) == len(SYSTEMS)


def test_averages_that_differ_by_rounding_alone_share_a_place():
    values = {"a": [0.1, 0.9, 0.4, 0.9], "b": [0.9, 0.4, 0.1, 0.9], "c": [0.0, 0.0, 0.0, 0.0]}
    assert np.mean(values["a"]) < np.mean(values["b"])
    assert leaderboard_frame(as_scores(values))["place"].to_list() == [1, 1, 3]


def test_intervals_are_named_by_their_level_everywhere(scores):
    from cranfield.reports import report
    from cranfield.reports.tables import leaderboard_frame

    page = report(scores, level=0.8)
    # The script of the page also contains texts of audits, whose intervals are 95 %.
    assert "95 %" not in re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert "Averages with 80 % intervals" in page
    assert "with its 80 % interval" in page
    assert "80 % from" in page
    assert {one.split("%")[0] for one in leaderboard_frame(scores, level=0.8)["interval"].drop_nulls()} == {"80"}
    assert "Averages with 95 % intervals" in report(scores)


def test_best_first_keeps_the_order_of_equals_and_puts_undefined_last():
    assert best_first(np.array([0.1, np.nan, 0.3, 0.1])) == [2, 0, 3, 1]
