from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cranfield as cf
from cranfield._numbers import listed
from cranfield.measures import Averaging
from cranfield.reports import report
from cranfield.reports.markup import text
from cranfield.reports.sections.leaderboard import full_and_condensed

pytestmark = pytest.mark.usefixtures("undrawn")

METRICS = ("P@5", "RR@10")


@pytest.fixture(scope="module")
def full(make_scores):
    return make_scores(metrics=METRICS)


@pytest.fixture(scope="module")
def condensed(make_scores):
    return make_scores(metrics=METRICS, lists="condensed")


def test_the_section_has_the_averages_and_places_of_both_kinds(full, condensed):
    frame = full_and_condensed(full, condensed).tables["full-and-condensed"]
    for kind, scores in (("full", full), ("condensed", condensed)):
        means = scores.average()
        assert frame[kind].to_list() == means.reshape(-1).tolist()
        order = 1 + np.argsort(np.argsort(-means, axis=0, kind="stable"), axis=0)
        assert frame[f"place_{kind}"].to_list() == order.reshape(-1).tolist()


def test_a_sentence_says_who_is_first_and_how_much_the_orders_agree(full, condensed):
    section = full_and_condensed(full, full)
    assert "is first with both; Kendall&#x27;s tau between the two orders is 1.00" in section.html
    turned = replace(condensed, values=-full.values)
    assert "is first with full lists, " in full_and_condensed(full, turned).html
    assert "tau between the two orders is -1.00" in full_and_condensed(full, turned).html
    assert "Condensed lists leave such items out" in section.more


def test_systems_that_tie_are_first_together(full):
    level = full_and_condensed(full, replace(full, values=np.full_like(full.values, 0.5))).html
    everyone = text(listed(list(full.systems)))
    reason = "there is no order to correlate, because all systems are equal"
    assert f"{everyone} are first with condensed ones; {reason}" in level


def test_a_system_without_an_average_has_no_place(full, condensed):
    values = condensed.values.copy()
    values[0] = np.nan
    left_out = Averaging(undefined="leave out")
    frame = full_and_condensed(full, replace(condensed, values=values), left_out).tables["full-and-condensed"]
    assert frame["place_condensed"].to_list()[:2] == [None, None]


def test_the_page_takes_the_other_kind_as_given_or_from_variants_of_the_same_threshold(full, condensed, make_scores):
    other_threshold = make_scores(metrics=METRICS, lists="condensed", threshold=2)
    assert 'id="full-and-condensed"' in report(full, other_lists=condensed)
    assert 'id="full-and-condensed"' in report(full, variants=[other_threshold, condensed])
    assert 'id="full-and-condensed"' in report(condensed, cf.compare(condensed), other_lists=full)
    for made in (report(full), report(full, variants=[other_threshold]), report(full, other_lists=full)):
        assert 'id="full-and-condensed"' not in made
