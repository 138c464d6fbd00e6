"""The sentences of an audit."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cranfield.audits import Audit, Grid, VariedDecision
from cranfield.audits.wording import p_phrase


def _sentence(sentences, pattern):
    matches = [sentence for sentence in sentences if re.search(pattern, sentence)]
    assert len(matches) == 1, sentences
    return matches[0]


def _audit(values, *opened, start=0, **options):
    grid = Grid.product(opened, start)
    return Audit.of(grid, ["a", "b"], values.mean(axis=2), values, draws=250, resamples=20, **options)


CUTOFF = VariedDecision("cutoff", "equivalent", ("5", "10"))


@pytest.fixture
def noise():
    return np.random.default_rng(0).normal(size=(2, 2, 100))


def test_the_starting_point_comes_first(audit):
    assert audit.sentences()[0].startswith("Under the starting point mf leads knn (difference 0.")


def test_agreement_within_the_question_stands_beside_chance(audit):
    sentence = _sentence(audit.sentences(), "of the same question")
    assert "(split random(train=0.8)), mf leads in 100 %" in sentence
    assert "if they were equally good, one of them would lead in" in sentence
    assert "Their joint test with the spread of seeds: median z, p = " in sentence


def test_the_options_stand_in_the_sentence_with_the_share(audit):
    sentence = _sentence(audit.sentences(), "that cross")
    assert "split (random(train=0.2), random(train=0.5), random(train=0.8))" in sentence
    assert "metric (P@5, P@10, AP), average (mean, weighted), over seed (0, 1)" in sentence


def test_a_share_is_not_called_a_probability(audit):
    assert "is not a probability" in str(audit)


def test_the_message_of_turned_winners_is_said(noise):
    values = 0.5 * noise
    values[0] += np.array([0.5, -0.5])[:, None]
    audit = _audit(values, CUTOFF)
    sentence = _sentence(audit.verdict, "one way or the other")
    assert sentence.startswith("In 100 % of the universes one is significantly better, one way or the other")
    assert "without any difference" in sentence
    assert sentence.endswith("the decisions change the winner.")


def test_universes_that_show_nothing_together_are_said_to_show_nothing(noise):
    values = noise - noise.mean(axis=2, keepdims=True)
    values[0] += 0.001
    sentence = _sentence(_audit(values, CUTOFF).verdict, "one way or the other")
    assert sentence.endswith("do not show that the systems differ.")


def test_what_turns_the_winner_and_what_stays_is_said(audit):
    turning = _sentence(audit.sentences(), "enough to change")
    assert "split random(train=0.2) instead of random(train=0.8) (another question, p <0.0001)" in turning
    assert _sentence(audit.sentences(), "still leads").startswith("Under 4 of the 5 single changes mf still leads")


def test_where_nothing_turns_the_winner_this_is_said(noise):
    values = noise.copy()
    values[0] += 1
    audit = _audit(values, CUTOFF)
    assert "The single change does not change the winner, nor do two decisions together." in str(audit)
    assert "Under the single change a still leads, always significantly" in str(audit)
    assert "No rule of three conditions predicts better when b leads" in str(audit)


def test_influence_names_the_decisions_and_the_noise_floor(audit):
    sentence = _sentence(audit.sentences(), "variance of the effect size")
    assert sentence.startswith("Largest shares of the variance of the effect size over the cells: split (")
    assert "chance has" in sentence


def test_the_rule_stands_beside_always_naming_the_same(audit):
    sentence = _sentence(audit.sentences(), "leads if")
    assert sentence.startswith("knn leads if: train share below 0.")
    assert "always naming the same one is right for" in sentence


def test_where_seeds_are_opened_the_joint_test_has_their_spread(audit):
    p = audit.pair().answer().corrected_retrained["either"]
    assert f"joint test with the spread of seeds, p {p_phrase(p)}" in _sentence(
        audit.sentences(), "one way or the other"
    )
    sentence = _sentence(audit.sentences(), "Effect of retraining")
    assert "mf differs significantly from itself in" in sentence
    assert "chance alone changes the winner in" in sentence
    assert f"the joint test has p {p_phrase(audit.pair().answer().corrected['either'])}" in sentence


def test_where_no_seed_is_opened_nothing_is_claimed_of_retraining(noise):
    sentences = _audit(noise, CUTOFF).verdict
    assert "joint test, p " in _sentence(sentences, "one way or the other")
    assert "holds for these trained models" in _sentence(sentences, "No seed was opened")


def test_questions_are_answered_one_by_one(audit):
    sentence = _sentence(audit.sentences(), "Question by question")
    assert "knn leads more often with" in sentence
    assert "mf leads more often with" in sentence


def test_equal_systems_have_a_verdict(noise):
    text = str(_audit(np.zeros((2, 2, 10)), CUTOFF))
    assert "Under the starting point a and b are equal." in text
    assert "changes the winner" not in text


def test_with_several_systems_the_ranks_come_first(audit):
    assert audit.verdict[0].startswith(
        "Of 3 systems, mf is first in 67 % of the cells, knn is first in 33 % of the cells."
    )
    assert audit.verdict[1:] == audit.sentences()


def test_without_other_options_nothing_is_said_of_changes():
    values = np.random.default_rng(0).normal(size=(2, 2, 50))
    text = str(_audit(values, VariedDecision("seed", "chance", ("0", "1"))))
    assert "single change" not in text
    assert "that cross seed (0, 1), " in text


def test_a_single_universe_that_differs_is_said_to_be_the_only_sign():
    rng = np.random.default_rng(3)
    values = np.zeros((2, 20, 100))
    values[0] = rng.normal(size=(20, 100))
    values[0] -= values[0].mean(axis=1, keepdims=True)
    values[0, 5] += 0.8
    audit = _audit(values, VariedDecision("k", "equivalent", tuple(f"{k}" for k in range(1, 21))))
    assert _sentence(audit.verdict, "one way or the other").endswith("(max |z|, p = 0.00398).")


def test_single_changes_that_a_sample_lacks_are_counted():
    opened = (CUTOFF, VariedDecision("gain", "equivalent", ("x", "y", "z")))
    grid = Grid(opened, np.array([[0, 0], [0, 1], [1, 2]]), np.arange(3), complete=False)
    values = np.random.default_rng(0).normal(size=(2, 3, 50)) + np.array([1.0, 0.0])[:, None, None]
    audit = Audit.of(grid, ["a", "b"], values.mean(axis=2), values, draws=50, resamples=5)
    assert "The single change here (of 3 possible ones) does not change the winner" in str(audit)


def test_with_one_question_its_share_is_said_once(noise):
    audit = _audit(noise, CUTOFF, VariedDecision("lists", "question", ("full",)))
    assert len([sentence for sentence in audit.verdict if " leads in " in sentence]) == 1
    assert "of the same question" not in str(audit)


def test_one_cell_says_nothing_of_other_decisions(noise):
    sentences = _audit(noise[:, :1], VariedDecision("cutoff", "equivalent", ("10",))).verdict
    assert sentences[1:] == ["There is one cell, cutoff (10): nothing can be said about other decisions."]


def test_cells_where_systems_are_equal_are_counted(noise):
    values = noise.copy()
    values[:, 0] = 0.5
    sentence = _sentence(_audit(values, CUTOFF, start=1).verdict, "that cross")
    assert "; they are equal in 50 %" in sentence
    assert "In all 2 cells that cross cutoff (5, 10), they are equal." in str(_audit(np.zeros((2, 2, 10)), CUTOFF))
