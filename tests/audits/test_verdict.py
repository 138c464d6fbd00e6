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


def test_the_starting_point_comes_first(audit):
    start = audit.pair_facts()[0]
    assert isinstance(start, audit_facts.LeadAtStart)
    assert (start.leader, start.other, start.equal) == ("mf", "knn", False)
    row = audit.frame().filter(system_a="knn", system_b="mf").filter("start").row(0, named=True)
    assert (start.difference, start.d_z, start.p) == (row["difference"], row["d_z"], row["p"])


def test_agreement_within_the_question_stands_beside_chance(audit):
    agreement = _the(audit_facts.SameQuestion, audit.pair_facts())
    share = agreement.answer.share(agreement.what)
    assert agreement.leader == "mf"
    assert agreement.answer == audit.pair().answer({"split": "random(train=0.8)"})
    assert share.share == pytest.approx(1)
    assert share.chance is not None


def test_the_options_stand_beside_the_share(audit):
    opened = _the(audit_facts.LedCells, audit.pair_facts()).crossed.opened
    assert [own.decision for own in opened] == ["split", "metric", "average", "seed"]
    assert [own.is_chance for own in opened] == [False, False, False, True]


def test_a_share_is_not_called_a_probability(audit):
    assert audit_facts.NotAProbability() in audit.facts()


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


def test_what_turns_the_winner_and_what_stays_is_said(audit):
    flips = _the(audit_facts.Flips, audit.pair_facts())
    swap = audit_facts.Swap("split", "question", "random(train=0.8)", "random(train=0.2)")
    assert [flip.swaps for flip in flips.turning] == [(swap,)]
    assert _the(audit_facts.LeadKept, audit.pair_facts()) == audit_facts.LeadKept("mf", flips)


def test_where_nothing_turns_the_winner_this_is_said(noise):
    values = noise.copy()
    values[0] += 1
    facts = _audit(values, CUTOFF).facts()
    flips, rule = _the(audit_facts.Flips, facts), _the(audit_facts.LeadRule, facts)
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


def test_questions_are_answered_one_by_one(audit):
    led = _the(audit_facts.LeadByQuestion, audit.pair_facts())
    assert led.systems == ("knn", "mf")
    assert [answer.question["split"] for answer in led.answers] == list(audit.grid.varied[0].options)


def test_equal_systems_have_a_verdict():
    facts = _audit(np.zeros((2, 2, 10)), CUTOFF).facts()
    assert facts[0].equal
    assert audit_facts.Flips not in _kinds(facts)
    assert _the(audit_facts.LedCells, facts).answer.share("equal").share == 1


def test_with_several_systems_the_ranks_come_first(audit):
    first, *rest = audit.facts()
    assert isinstance(first, audit_facts.FirstPlaces)
    shares = {row["system"]: row["share"] for row in first.rows}
    assert shares == pytest.approx({"mf": 2 / 3, "knn": 1 / 3, "pop": 0})
    assert rest == audit.pair_facts()
    assert audit.verdict[1:] == audit.sentences()


def test_without_other_options_nothing_is_said_of_changes():
    values = np.random.default_rng(0).normal(size=(2, 2, 50))
    facts = _audit(values, VariedDecision("seed", "chance", ("0", "1"))).facts()
    assert not _kinds(facts) & {audit_facts.Flips, audit_facts.LeadKept}
    assert str(_the(audit_facts.LedCells, facts).crossed) == "seed (0, 1)"


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
    flips = _the(audit_facts.Flips, audit.facts())
    assert (len(flips.singles), flips.possible) == (1, 3)


def test_with_one_question_its_share_is_said_once(noise):
    audit = _audit(noise, CUTOFF, VariedDecision("lists", "question", ("full",)))
    assert audit_facts.LedCells in _kinds(audit.facts())
    assert audit_facts.SameQuestion not in _kinds(audit.facts())


def test_one_cell_says_nothing_of_other_decisions(noise):
    facts = _audit(noise[:, :1], VariedDecision("cutoff", "equivalent", ("10",))).facts()
    assert [type(fact) for fact in facts] == [audit_facts.LeadAtStart, audit_facts.LedCells]


def test_cells_where_systems_are_equal_are_counted(noise):
    values = noise.copy()
    values[:, 0] = 0.5
    fact = _the(audit_facts.LedCells, _audit(values, CUTOFF, start=1).facts())
    assert fact.answer.share("equal").share == 0.5
