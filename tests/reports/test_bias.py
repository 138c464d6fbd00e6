"""The page of a bias, and times random on the page."""

from __future__ import annotations

import html

import pytest

import cranfield as cf
from cranfield.facts.experiment import MeasuredAgain
from cranfield.reports.html_page import page
from cranfield.reports.sections import bias as section
from cranfield.reports.sections.bias import beside_random


@pytest.fixture(scope="module")
def found():
    ratings = cf.simulate.world(80, 60, 1_500, seed=1).ratings
    return cf.bias(ratings, {"<b>": "random", "item mean": "average"}, groups=3, nonrelevant=10)


def test_the_page_has_the_verdict_the_orders_and_what_cannot_be_known(found, monkeypatch):
    monkeypatch.setattr(cf.biases.Bias, "plot", lambda _: None)
    monkeypatch.setattr(section, "figure", lambda name, _, caption: f"{name}: {caption}")
    made = page("Bias", section.bias_sections(found))
    assert "Ranking by popularity alone reaches" in made
    for title in ("The order under each protocol", "How far above a random ranking?", "What cannot be known"):
        assert f">{title}</h2>" in made
    assert "<b>" not in made.split("<main")[1].split("</main>")[0]
    assert "bias-orders: P@10 of each system as measured, and without popularity's advantage." in html.unescape(made)
    assert made.index('<p class="answer">') < made.index("bias-orders: ")


def test_the_orders_have_a_panel_for_each_protocol(found):
    panels = found.plot().to_dict()["concat"]
    titles = [panel["layer"][0]["encoding"]["x"]["title"] for panel in panels]
    assert [code for _, code in titles] == [f"({protocol.name})" for protocol in found.protocols]


@pytest.mark.slow
def test_the_orders_are_drawn(found):
    assert 'id="figure-bias-orders"' in page("Bias", section.bias_sections(found))


def test_as_one_section_it_opens_with_whether_the_winner_depends_on_the_protocol(found):
    made = section.bias_section(found, MeasuredAgain(5, plain_means=False))
    assert made.html.startswith(f"<p>{html.escape(found.verdict[0])}</p>")
    assert "Measured on the first of 5 parts" in made.more
    assert "<h3>What cannot be known</h3>" in made.more
    assert "<b>" not in made.html + made.more


def test_the_section_has_a_row_per_system_and_what_random_scores():
    train = cf.Ratings.of([1, 2, 2, 2], ["a", "b", "c", "d"])
    runs = {"<i>": {1: ["b", "c"]}, "other": {1: ["c", "b"]}}
    section = beside_random(cf.ratio_to_random(runs, cf.Ratings.of([1], ["b"]), ["P@1", "RR"], train=train))
    assert "&lt;i&gt;" in section.html
    assert "a random ranking" in section.html
    assert 'data-key="3.0"' in section.html
    assert section.tables["times-random"]["times_random"].to_list() == [3.0, 2.0, 0.0, 1.0]
