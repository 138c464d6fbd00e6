"""Enumeration: which cells there are, and which of them are one universe."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield import SettingError
from cranfield.audits.enumeration import balanced_sample, enumerate_universes, imbalance_of
from cranfield.audits.parsing import audit_settings
from cranfield.audits.verdict import facts_of_enumeration
from cranfield.experiments import System
from cranfield.facts import audit as audit_facts


def crossed(experiment):
    return enumerate_universes(audit_settings(experiment))


def test_all_options_are_crossed(tiny):
    enumeration = crossed(tiny(audit={"vary": {"cutoff": [5, 10, 20], "average": ["mean", "median"]}}))
    assert (len(enumeration.cells), len(enumeration.universes), enumeration.complete) == (6, 6, True)


def test_an_option_that_does_not_apply_repeats_the_universe(tiny):
    enumeration = crossed(
        tiny(audit={"vary": {"metrics": ["P", "nDCG"], "cutoff": [5, 10], "gain": ["rating", "exp"]}})
    )
    assert (len(enumeration.cells), len(enumeration.universes)) == (8, 6)


def test_what_is_measured_needs_no_further_setup(tiny):
    table = {"vary": {"split": ["random(train=0.5)", "random(train=0.8)"], "cutoff": [5, 10], "threshold": [3, 4]}}
    assert len(crossed(tiny(audit=table)).setups) == 2


def test_condensed_lists_are_a_setup_of_their_own(tiny):
    assert len(crossed(tiny(audit={"vary": {"lists": ["full", "condensed"]}})).setups) == 2


def test_lists_are_as_long_as_the_deepest_cut_off(tiny):
    enumeration = crossed(tiny(audit={"vary": {"cutoff": [10, 500]}}))
    assert enumeration.setups[0].experiment.decisions.length == 500


def test_repetitions_are_said_to_be_in_no_p_value(tiny):
    enumeration = crossed(tiny(audit={"vary": {"cutoff": [5, 10]}}, repetitions=3))
    assert facts_of_enumeration(enumeration) == [audit_facts.AveragedRepetitions(3)]


def test_a_contradiction_is_an_invalid_cell_with_its_reason(tiny):
    enumeration = crossed(tiny(audit={"vary": {"lists": ["full", "condensed"], "nonrelevant": ["all", 20]}}))
    assert len(enumeration.cells) == 3
    ((cell, reason),) = enumeration.invalid
    assert cell == (1, 1)
    assert "keeps only rated items" in reason


def test_an_option_that_is_never_possible_is_refused(tiny):
    with pytest.raises(SettingError, match=r"candidates=group is not possible in any combination: .*relevant='one'"):
        crossed(tiny(audit={"vary": {"candidates": ["all", "group"]}}))


def test_the_training_seed_changes_systems_that_draw_alone(tiny):
    systems = (System("popular", "popularity"), System("chance", "random"))
    enumeration = crossed(tiny(systems=systems, audit={"vary": {"training_seed": 5}}))
    spellings = [tuple(one.spelling for one in setup.experiment.systems) for setup in enumeration.setups]
    assert spellings == [("popularity", "random"), *(("popularity", f"random(seed={seed})") for seed in (1, 2, 3, 4))]


@pytest.mark.parametrize(
    "vary", [{"training_seed": 5}, {"gain": ["exp", "rating"], "metrics": ["P", "AP"], "cutoff": [5, 10]}]
)
def test_a_decision_that_changes_nothing_is_refused(tiny, vary):
    with pytest.raises(SettingError, match=f"{next(iter(vary))} changes nothing in any combination"):
        crossed(tiny(audit={"vary": vary}))


def test_options_that_are_declared_invalid_are_left_out_and_counted_with_their_reason(tiny):
    vary = {"cutoff": [5, 10, 50], "average": ["mean", "median"]}
    enumeration = crossed(tiny(audit={"vary": vary, "invalid": {"cutoff": {"50": "lists are short"}}}))
    assert len(enumeration.cells) == 4
    declared = audit_facts.DeclaredInvalid(2, (("cutoff", "50", "lists are short"),))
    assert facts_of_enumeration(enumeration) == [declared]


def test_contradictions_are_counted_where_a_sample_is_drawn_too(tiny):
    vary = {"lists": ["full", "condensed"], "nonrelevant": ["all", 5], "cutoff": [1, 2, 3, 4, 5]}
    enumeration = crossed(tiny(audit={"vary": vary, "budget": 12}))
    assert not enumeration.complete
    assert len(enumeration.invalid) == 6


def test_the_split_seed_changes_the_split_alone(tiny):
    enumeration = crossed(tiny(audit={"vary": {"split_seed": 5}}))
    assert [setup.experiment.decisions.split for setup in enumeration.setups][:2] == [
        "random(train=0.5)",
        "random(train=0.5, seed=1)",
    ]


def test_beyond_the_budget_a_balanced_sample_is_crossed(tiny):
    table = {
        "vary": {"cutoff": [1, 2, 3, 4, 10], "threshold": [2, 3, 4], "average": ["mean", "median", "geometric"]},
        "budget": 15,
    }
    enumeration = crossed(tiny(audit=table))
    counts = [np.bincount(column) for column in enumeration.cells.T]
    assert (len(enumeration.cells), enumeration.complete) == (15, False)
    assert all(np.ptp(count) <= 1 for count in counts)
    assert [decision.start for decision in enumeration.settings.varied] == enumeration.cells[enumeration.start].tolist()


SIZES = [4, 3, 5, 2]


@pytest.mark.parametrize("seed", [0, 1])
def test_options_are_equally_frequent_and_cells_differ(seed):
    cells, _ = balanced_sample(SIZES, 50, [1, 1, 1, 1], seed=seed)
    assert all(np.ptp(np.bincount(column, minlength=size)) <= 1 for column, size in zip(cells.T, SIZES))
    assert len(np.unique(cells, axis=0)) == 50
    assert cells[0].tolist() == [1, 1, 1, 1]


def test_pairs_are_more_even_than_by_chance():
    cells, imbalance = balanced_sample(SIZES, 50, [0, 0, 0, 0])
    rng = np.random.default_rng(0)
    drawn = np.stack([rng.permutation(np.arange(50) % size) for size in SIZES], axis=1).astype(np.int32)
    assert imbalance == imbalance_of(cells, SIZES) < 0.6 * imbalance_of(drawn, SIZES)


def test_impossible_cells_are_not_drawn_and_options_stay_even():
    def is_valid(cells):
        return (cells[:, 0] != 3) | (cells[:, 2] != 4)

    cells, _ = balanced_sample(SIZES, 40, [0, 0, 0, 0], is_valid)
    assert is_valid(cells).all()
    assert all(np.ptp(np.bincount(column, minlength=size)) <= 1 for column, size in zip(cells.T, SIZES))


def test_the_same_seed_draws_the_same_sample():
    assert np.array_equal(
        balanced_sample(SIZES, 30, [0] * 4, seed=5)[0], balanced_sample(SIZES, 30, [0] * 4, seed=5)[0]
    )


def test_given_cells_are_in_the_sample_and_options_stay_even():
    beside = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 4, 0], [0, 0, 0, 1]]
    cells, _ = balanced_sample(SIZES, 41, [0, 0, 0, 0], beside=beside)
    assert cells[:5].tolist() == [[0, 0, 0, 0], *beside]
    assert len(np.unique(cells, axis=0)) == 41
    assert all(np.ptp(np.bincount(column, minlength=size)) <= 1 for column, size in zip(cells.T, SIZES))


def test_given_cells_that_would_make_options_uneven_are_not_forced():
    beside = [[0, 0, option, 0] for option in range(1, 5)]
    cells, _ = balanced_sample(SIZES, 8, [0, 0, 0, 0], beside=beside)
    assert all(np.ptp(np.bincount(column, minlength=size)) <= 1 for column, size in zip(cells.T, SIZES))
