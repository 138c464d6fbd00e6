"""Every fact of an assessment is said in one sentence, and comes back from JSON as it was."""

# ruff: noqa: E501
from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cranfield.facts import Fact, assessment

BEST, RIVAL, LAST = (
    assessment.Candidate("AP", "mean", 0.6),
    assessment.Candidate("P@10", "median", 0.2996),
    assessment.Candidate("RR", "mean", 0.1004),
)
CHOICE = assessment.MetricChoice(
    (BEST, RIVAL, LAST),
    equal=1,
    level=(),
    draws=200,
    systems=8,
)
ORDER = assessment.OrderKept("users missing at random", 2, ("AP", 0.9, 0.05), ("RR", 0.5, 0.25))
APART = assessment.ToldApart("AP", 28, 1.25, 0.75, 0.05, rivals=8)

SAID: list[tuple[Fact, str]] = [
    (
        assessment.RankAlike(("rsv", "rw")),
        "rsv and rw rank alike here: every DP contains their p-value, which is 1",
    ),
    (
        assessment.RankAlike(("rsv", "rw"), (("AP", 0.5), ("P@10", 0.75))),
        "rsv and rw rank alike here: every DP contains their p-value, which is 1; without rw, DP is lowest for AP 0.500 and P@10 0.750.",
    ),
    (BEST, "AP"),
    (RIVAL, "P@10 (median over users)"),
    (
        CHOICE,
        "Trust AP most on these data. This is likely: it comes first in 60 % of 200 draws of the systems.",
    ),
    (
        replace(CHOICE, systems=7, level=(RIVAL, RIVAL, LAST, LAST)),
        "No clear choice: AP scores highest, but 7 systems are too few (at least eight) and its lead over 4 others may be chance.",
    ),
    (
        replace(CHOICE, level=(RIVAL,)),
        "No clear choice: AP scores highest, but its lead over P@10 (median over users) may be chance.",
    ),
    (
        replace(CHOICE, equal=2),
        "No clear choice: AP and P@10 (median over users) score the same on these data.",
    ),
    (
        replace(CHOICE, candidates=(RIVAL,)),
        "P@10 (median over users) was assessed alone, so there is nothing to compare it with.",
    ),
    (
        assessment.AdviceScope("AP", {"weights": (7, 9), "sizes": (2, 2)}),
        "With 7 of 9 other weights of the criteria and 2 of 2 parts of the sizes (large, small) AP also scores highest; users are not drawn again.",
    ),
    (assessment.NextStep(("AP",)), "Next: assess at least 8 systems."),
    (
        assessment.NextStep(("AP", "RR"), 40),
        "Next: AP and RR are defensible, so name one before you compare; about 40 systems would decide between the first two.",
    ),
    (
        assessment.NextStep(("AP", "RR", "P@10", "nDCG")),
        "Next: AP, RR, P@10 and 1 more are defensible, so name one before you compare; no number of systems seems to decide between the first two.",
    ),
    (
        ORDER,
        "With users missing at random, AP keeps the order of the systems best (mean tau 0.900, 5% of the pairs flip) and RR least (0.500, 25%).",
    ),
    (
        replace(ORDER, best=("AP", -0.1, 0.55)),
        "With users missing at random, AP reverses the order of the systems least (mean tau -0.100, 55% of the pairs flip) and RR most (0.500, 25%).",
    ),
    (
        replace(ORDER, worst=("RR", 0.9, 0.05)),
        "With users missing at random, all metrics keep the order equally well (mean tau 0.900).",
    ),
    (
        replace(ORDER, metrics=1, worst=ORDER.best),
        "With users missing at random, AP has a mean tau of 0.900 (5% of the pairs of systems flip).",
    ),
    (
        APART,
        "AP tells the systems apart best (its discriminative power, the sum of the p-values of 28 pairs, is 1.250, lower is better; 75% of the pairs are significant at 0.05, uncorrected).",
    ),
    (
        replace(APART, alike=True),
        "AP tells the systems apart no better than the others (its discriminative power, the sum of the p-values of 28 pairs, is 1.250, lower is better; 75% of the pairs are significant at 0.05, uncorrected).",
    ),
    (
        replace(APART, rivals=0),
        "AP tells the systems apart (its discriminative power, the sum of the p-values of 28 pairs, is 1.250, lower is better; 75% of the pairs are significant at 0.05, uncorrected).",
    ),
    (
        assessment.Agreeing((("AP", "nDCG"), ("P", "Recall", "F1"))),
        "These metrics agree (mean tau at least 0.9): AP, nDCG; P, Recall, F1.",
    ),
    (
        assessment.OneByOne(("Gini", "AUC"), has_numba=True),
        "measured one by one, not by compiled code: Gini, AUC",
    ),
    (
        assessment.OneByOne(("AP",), has_numba=False),
        "numba is not installed, so the samples were measured one by one, which is slow; get it with: pip install 'cranfield[recommend]'",
    ),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert Fact.read(json.loads(json.dumps(fact.as_dict()))) == fact


def test_every_fact_of_an_assessment_has_a_sentence_here():
    kinds = {kind for kind in Fact._kinds.values() if kind.__module__ == assessment.__name__}
    assert {type(fact) for fact, _ in SAID} == kinds


def test_above_a_table_the_power_is_said_in_short():
    assert APART.brief == ("AP tells the systems apart best: DP 1.2500 over 28 pairs, of which 75% differ at 0.05.")


@pytest.mark.parametrize(
    ("first", "sure"), [(0.9, "sure"), (0.8997, "sure"), (0.895, "likely"), (0.5, "likely"), (0.2, "not sure")]
)
def test_the_word_never_contradicts_the_share_that_is_printed(first, sure):
    best = replace(BEST, first=first)
    assert f"This is {sure}: " in str(replace(CHOICE, candidates=(best, RIVAL)))
