"""Crossing: which cells there are, and which of them are one universe."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import SettingError
from cranfield.audits.asking import menu_of
from cranfield.audits.crossing import cross
from cranfield.audits.notes import notes_on
from cranfield.experiments import System


def crossed(experiment):
    return cross(menu_of(experiment))


def test_all_options_are_crossed(tiny):
    crossing = crossed(tiny(audit={"vary": {"cutoff": [5, 10, 20], "average": ["mean", "median"]}}))
    assert (len(crossing.cells), len(crossing.universes), crossing.complete) == (6, 6, True)


def test_an_option_that_does_not_apply_repeats_the_universe(tiny):
    crossing = crossed(tiny(audit={"vary": {"metrics": ["P", "nDCG"], "cutoff": [5, 10], "gain": ["rating", "exp"]}}))
    assert (len(crossing.cells), len(crossing.universes)) == (8, 6)


def test_what_is_measured_needs_no_further_setup(tiny):
    table = {"vary": {"split": ["random(train=0.5)", "random(train=0.8)"], "cutoff": [5, 10], "threshold": [3, 4]}}
    assert len(crossed(tiny(audit=table)).setups) == 2


def test_condensed_lists_are_a_setup_of_their_own(tiny):
    assert len(crossed(tiny(audit={"vary": {"lists": ["full", "condensed"]}})).setups) == 2


def test_lists_are_as_long_as_the_deepest_cut_off(tiny):
    crossing = crossed(tiny(audit={"vary": {"cutoff": [10, 500]}}))
    assert crossing.setups[0].experiment.decisions.length == 500


def test_repetitions_are_said_to_be_in_no_p_value(tiny):
    (note,) = notes_on(crossed(tiny(audit={"vary": {"cutoff": [5, 10]}}, repetitions=3)))
    assert "averaged over 3 repetitions, and no p-value of the audit includes the spread between these" in note


def test_a_contradiction_is_an_invalid_cell_with_its_reason(tiny):
    crossing = crossed(tiny(audit={"vary": {"lists": ["full", "condensed"], "nonrelevant": ["all", 20]}}))
    assert len(crossing.cells) == 3
    ((cell, reason),) = crossing.invalid
    assert cell == (1, 1)
    assert "keeps only rated items" in reason


def test_an_option_that_is_never_possible_is_refused(tiny):
    with pytest.raises(SettingError, match=r"candidates=group is not possible in any combination: .*relevant='one'"):
        crossed(tiny(audit={"vary": {"candidates": ["all", "group"]}}))


def test_the_training_seed_changes_systems_that_draw_alone(tiny):
    systems = (System("popular", "popularity"), System("chance", "random"))
    crossing = crossed(tiny(systems=systems, audit={"vary": {"training_seed": 5}}))
    spellings = [tuple(one.spelling for one in setup.experiment.systems) for setup in crossing.setups]
    assert spellings == [("popularity", "random"), *(("popularity", f"random(seed={seed})") for seed in (1, 2, 3, 4))]


@pytest.mark.parametrize(
    "vary", [{"training_seed": 5}, {"gain": ["exp", "rating"], "metrics": ["P", "AP"], "cutoff": [5, 10]}]
)
def test_a_decision_that_changes_nothing_is_refused(tiny, vary):
    with pytest.raises(SettingError, match=f"{next(iter(vary))} changes nothing in any combination"):
        crossed(tiny(audit={"vary": vary}))


def test_options_that_are_declared_invalid_are_left_out_and_counted_with_their_reason(tiny):
    vary = {"cutoff": [5, 10, 50], "average": ["mean", "median"]}
    crossing = crossed(tiny(audit={"vary": vary, "invalid": {"cutoff": {"50": "lists are short"}}}))
    assert len(crossing.cells) == 4
    assert notes_on(crossing) == ["Declared invalid here, with 2 combinations: cutoff 50 (lists are short)."]


def test_contradictions_are_counted_where_a_sample_is_drawn_too(tiny):
    vary = {"lists": ["full", "condensed"], "nonrelevant": ["all", 5], "cutoff": [1, 2, 3, 4, 5]}
    crossing = crossed(tiny(audit={"vary": vary, "budget": 12}))
    assert not crossing.complete
    assert len(crossing.invalid) == 6


def test_the_split_seed_changes_the_split_alone(tiny):
    crossing = crossed(tiny(audit={"vary": {"split_seed": 5}}))
    assert [setup.experiment.decisions.split for setup in crossing.setups][:2] == [
        "random(train=0.5)",
        "random(train=0.5, seed=1)",
    ]


def test_beyond_the_budget_a_balanced_sample_is_crossed(tiny):
    table = {
        "vary": {"cutoff": [1, 2, 3, 4, 10], "threshold": [2, 3, 4], "average": ["mean", "median", "geometric"]},
        "budget": 15,
    }
    crossing = crossed(tiny(audit=table))
    counts = [np.bincount(column) for column in crossing.cells.T]
    assert (len(crossing.cells), crossing.complete) == (15, False)
    assert all(np.ptp(count) <= 1 for count in counts)
    assert [opening.start for opening in crossing.menu.openings] == crossing.cells[crossing.start].tolist()
