"""The verdict of an audit: which facts it holds, and their numbers."""

from __future__ import annotations

import numpy as np
import pytest

from cranfield.audits import Audit, Grid, VariedDecision
from cranfield.facts import audit as audit_facts


def _the(kind, facts):
    (fact,) = [fact for fact in facts if isinstance(fact, kind)]
    return fact


def _kinds(facts):
    return {type(fact) for fact in facts}


def _audit(values, *opened, start=0, **options):
    grid = Grid.product(opened, start)
    return Audit.of(grid, ["a", "b"], values.mean(axis=2), values, draws=250, resamples=20, **options)


CUTOFF = VariedDecision("cutoff", "equivalent", ("5", "10"))


@pytest.fixture
def noise():
    return np.random.default_rng(0).normal(size=(2, 2, 100))


def test_whether_the_winner_survives_comes_first_and_the_starting_point_second(audit):
    answer, start, *_ = audit.pair_facts()
    assert isinstance(answer, audit_facts.Survival)
    assert (answer.leader, answer.other, answer.setups) == ("mf", "knn", audit.grid.n_cells)
    assert answer.share == audit.pair().answer().share("trails").share
    assert answer.reversing == ("a random 80 % of ratings as test",)
    assert str(answer).endswith("; with a random 80 % of ratings as test knn leads.")
    assert isinstance(start, audit_facts.LeadAtStart)
    assert (start.leader, start.other, start.equal) == ("mf", "knn", False)
    row = audit.frame().filter(system_a="knn", system_b="mf").filter("start").row(0, named=True)
    assert (start.difference, start.d_z, start.p) == (row["difference"], row["d_z"], row["p"])


def test_the_share_stands_beside_chance(audit):
    assert _the(audit_facts.ChanceShare, audit.pair_facts()).chance == audit.pair().answer().share("leads").chance


def test_the_message_of_turned_winners_is_said(noise):
    values = 0.5 * noise
    values[0] += np.array([0.5, -0.5])[:, None]
    fact = _the(audit_facts.JointDifference, _audit(values, CUTOFF).facts())
    assert fact.answer.joint.observed["either"] == 1
    assert fact.answer.relied_on["either"] < fact.alpha <= fact.answer.relied_on["median"]


def test_universes_that_show_nothing_together_have_no_small_p(noise):
    values = noise - noise.mean(axis=2, keepdims=True)
    values[0] += 0.001
    fact = _the(audit_facts.JointDifference, _audit(values, CUTOFF).facts())
    assert min(fact.answer.relied_on.values()) > 0.05


def test_what_turns_the_winner_is_a_fact_of_the_pair(audit):
    swap = audit_facts.Swap("split", "question", "random(train=0.8)", "random(train=0.2)")
    assert [flip.swaps for flip in audit.pair().flips.turning] == [(swap,)]


def test_where_nothing_turns_the_winner_this_is_said(noise):
    values = noise.copy()
    values[0] += 1
    audit = _audit(values, CUTOFF)
    flips, rule = audit.pair().flips, _the(audit_facts.LeadRule, audit.facts())
    assert str(audit.facts()[0]).endswith("; no change of one or two decisions reverses it.")
    assert len(flips.singles) == 1
    assert flips.turning == flips.turning_significance == ()
    assert (rule.other, rule.conditions, rule.paths) == ("b", 0, ())


def test_influence_names_the_decisions_and_the_noise_floor(audit):
    influences = _the(audit_facts.LargestInfluences, audit.pair_facts())
    assert influences.named[0]["decision"] == "split"
    assert "chance" in [row["kind"] for row in influences.rows]


def test_the_rule_stands_beside_always_naming_the_same(audit):
    rule = _the(audit_facts.LeadRule, audit.pair_facts())
    assert (rule.leader, rule.other) == ("mf", "knn")
    assert rule.paths[0][0].startswith("train share below 0.")
    assert rule.majority < rule.accuracy


def test_where_seeds_are_opened_the_joint_test_has_their_spread(audit):
    joint, retraining = (
        _the(kind, audit.pair_facts()) for kind in (audit_facts.JointDifference, audit_facts.Retraining)
    )
    assert joint.answer == audit.pair().answer()
    assert joint.answer.relied_on == joint.answer.corrected_retrained != {}
    assert retraining.p == joint.answer.corrected
    assert {noise.system for noise in retraining.noise} == {"mf", "knn"}
    assert retraining.turned_by_chance == audit.pair().turned_by_chance


def test_where_no_seed_is_opened_nothing_is_claimed_of_retraining(noise):
    facts = _audit(noise, CUTOFF).facts()
    assert _the(audit_facts.JointDifference, facts).answer.corrected_retrained == {}
    assert _the(audit_facts.Retraining, facts).turned_by_chance is None


def test_equal_systems_have_a_verdict():
    facts = _audit(np.zeros((2, 2, 10)), CUTOFF).facts()
    assert facts[0].equal
    assert facts[0].share == 0


def test_with_several_systems_the_ranks_come_second(audit):
    answer, ranks, *rest = audit.facts()
    assert isinstance(ranks, audit_facts.FirstPlaces)
    shares = {row["system"]: row["share"] for row in ranks.rows}
    assert shares == pytest.approx({"mf": 2 / 3, "knn": 1 / 3, "pop": 0})
    assert [answer, *rest] == audit.pair_facts()
    assert audit.sentences() == [audit.verdict[0], *audit.verdict[2:]]


def test_a_single_universe_that_differs_is_the_only_sign():
    rng = np.random.default_rng(3)
    values = np.zeros((2, 20, 100))
    values[0] = rng.normal(size=(20, 100))
    values[0] -= values[0].mean(axis=1, keepdims=True)
    values[0, 5] += 0.8
    audit = _audit(values, VariedDecision("k", "equivalent", tuple(f"{k}" for k in range(1, 21))))
    p = _the(audit_facts.JointDifference, audit.facts()).answer.relied_on
    assert p["largest"] == pytest.approx(0.00398, abs=1e-5)
    assert min(p["either"], p["median"]) >= 0.05


def test_single_changes_that_a_sample_lacks_are_counted():
    opened = (CUTOFF, VariedDecision("gain", "equivalent", ("x", "y", "z")))
    grid = Grid(opened, np.array([[0, 0], [0, 1], [1, 2]]), np.arange(3), complete=False)
    values = np.random.default_rng(0).normal(size=(2, 3, 50)) + np.array([1.0, 0.0])[:, None, None]
    audit = Audit.of(grid, ["a", "b"], values.mean(axis=2), values, draws=50, resamples=5)
    flips = audit.pair().flips
    assert (len(flips.singles), flips.possible) == (1, 3)


def test_one_cell_says_nothing_of_other_decisions(noise):
    facts = _audit(noise[:, :1], VariedDecision("cutoff", "equivalent", ("10",))).facts()
    assert [type(fact) for fact in facts] == [audit_facts.Survival, audit_facts.LeadAtStart]


def test_cells_where_systems_are_equal_are_counted(noise):
    values = noise.copy()
    values[:, 0] = 0.5
    assert _audit(values, CUTOFF, start=1).pair().answer().share("equal").share == 0.5
