"""The page over all datasets: the answer and the forest plot first, then each dataset with its page."""

import polars as pl

from cranfield.across import compare_datasets
from cranfield.facts import across as across_facts
from cranfield.reports.sections.across import across_sections, datasets_section

TABLE = pl.DataFrame(
    {
        "dataset": ["<b>one</b>", "two", "three", "four"],
        "a": [0.30, 0.21, 0.11, 0.05],
        "<i>b</i>": [0.28, 0.20, 0.13, 0.04],
        "c": [0.10, 0.09, 0.12, 0.01],
    }
)


def test_the_answer_and_the_figure_come_first_and_the_rest_is_folded():
    comparison = compare_datasets(TABLE)
    answer, systems, rules = across_sections(comparison)
    assert answer.html.startswith('<p class="answer">On these four datasets ')
    assert answer.html.index("<figure>") < answer.html.index("<details>")
    assert set(answer.tables) == {"across-pairs", "across-effects"}
    assert systems.title.endswith("?")
    assert "by all" in rules.html or " rules" in rules.html
    assert all("<i>b" not in section.html and "<b>one" not in section.html for section in (answer, systems, rules))


def test_why_there_is_no_verdict_stands_in_its_place():
    (section,) = across_sections(across_facts.NothingOverDatasets("they share nothing"))
    assert section.html == '<p class="answer">There is no verdict over all datasets: they share nothing.</p>'


def test_each_dataset_has_its_answer_and_a_link_to_its_page():
    html = datasets_section({"x": "a & b differ."}, {"x": "report-x.html"}).html
    assert "<summary>x</summary>" in html
    assert "a &amp; b differ." in html
    assert '<a href="report-x.html">' in html
