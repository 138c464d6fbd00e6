from __future__ import annotations

import numpy as np
import pytest

from cranfield import Ratings, SettingError
from cranfield.assessments.assessing import Assessing
from cranfield.assessments.scenarios import SCENARIOS, SIZES, _smallest, grids_of, scenario, sizes_of
from cranfield.judgments import Judgments


@pytest.fixture(scope="module")
def judgments(world):
    return Judgments.of(world[1], 4.0)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_whole_size_keeps_everything(judgments, name):
    assert SCENARIOS[name].mask(judgments, 1.0, 3, 5).all()


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("size", [0.75, 0.5, 0.11, 0.001])
def test_a_share_of_the_units_remains_and_at_least_one(judgments, name, size):
    one = SCENARIOS[name]
    mask = one.mask(judgments, size, 1, 5)
    unit = {"ratings": np.arange(len(judgments)), "items": judgments.items, "users": judgments.lists}[one.unit]
    total = len(np.unique(unit))
    assert len(np.unique(unit[mask])) == max(1, int(size * total + 0.5))
    for kept in np.unique(unit[mask]):
        assert mask[unit == kept].all()


@pytest.mark.parametrize(("name", "unit"), [("popular", "items"), ("large", "lists")])
def test_the_largest_units_go_first_and_smaller_test_sets_are_parts_of_larger_ones(judgments, name, unit):
    of = getattr(judgments, unit)
    counts = np.bincount(of)
    before = np.ones(len(judgments), dtype=bool)
    for size in (0.8, 0.5, 0.3, 0.1):
        mask = SCENARIOS[name].mask(judgments, size, 0, 3)
        assert counts[of[~mask]].min() >= counts[of[mask]].max()
        assert not (mask & ~before).any()
        before = mask
    assert SCENARIOS[name].n_samples(50) == 1


def test_samples_sizes_and_seeds_have_streams_of_their_own(judgments):
    draws = [
        scenario("ratings").mask(judgments, size, sample, seed).tobytes()
        for size, sample, seed in ((0.5, 0, 0), (0.5, 1, 0), (0.5, 0, 1))
    ]
    assert len(set(draws)) == 3
    assert draws[0] == scenario("ratings").mask(judgments, 0.5, 0, 0).tobytes()


def test_of_equal_keys_the_earlier_is_smaller():
    assert _smallest(np.array([0.5, 0.1, 0.5, 0.5]), 2).tolist() == [True, True, False, False]


def test_the_papers_grids():
    assert (len(SIZES["fives"]), len(SIZES["ones"]), len(SIZES["top"])) == (20, 100, 21)
    assert (SIZES["fives"][-1], SIZES["ones"][-1], SIZES["top"][-1]) == (0.05, 0.01, 0.8)
    assert sizes_of([0.1, 1, 0.5, 0.5]) == (1.0, 0.5, 0.1)


@pytest.mark.parametrize("sizes", ["fivs", [], [1.5], [0.0], [-0.1]])
def test_a_grid_that_cannot_be_is_refused(sizes):
    with pytest.raises(SettingError):
        sizes_of(sizes)


def test_a_scenario_can_have_sizes_of_its_own():
    ways = [scenario("ratings"), scenario("popular")]
    assert grids_of(ways, {"popular": "fives"}) == {"ratings": SIZES["fives"], "popular": SIZES["fives"]}
    # The grids of Valcarce et al. (2018), section 5: 100 to 5 % of the ratings, and 100 to 80 % of the items.
    assert grids_of(ways, "papers") == {"ratings": SIZES["fives"], "popular": SIZES["top"]}
    assert Assessing().sizes == "papers"
    assert grids_of(ways, [0.5]) == {"ratings": (0.5,), "popular": (0.5,)}
    with pytest.raises(SettingError, match="users"):
        grids_of(ways, {"users": "top"})


def test_an_unknown_scenario_suggests_the_nearest():
    with pytest.raises(SettingError, match="did you mean 'popular'"):
        scenario("populer")


@pytest.mark.parametrize(("size", "users", "left"), [(0.7, 45, 32), (0.29, 50, 15), (0.58, 25, 15), (0.5, 4, 2)])
def test_half_a_unit_is_rounded_up_whatever_floats_make_of_it(size, users, left):
    test = Ratings.of([f"u{k}" for k in range(users)], ["x"] * users)
    assert scenario("users").mask(Judgments.of(test, 1.0), size).sum() == left


@pytest.mark.parametrize("sizes", [["a"], [0.5, None], 3, None])
def test_sizes_that_are_no_shares_are_refused(sizes):
    with pytest.raises(SettingError, match="sizes="):
        sizes_of(sizes)
    assert sizes_of(0.5) == (0.5,)
