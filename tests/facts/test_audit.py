"""Every fact of an audit is said in one sentence, which is written here once, and comes back from JSON as it was."""

# ruff: noqa: E501
from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cranfield.facts import Fact, audit

SHARE = audit.LeadShare("cells", "leads", 0.6, 0.5, 0.71, chance=0.938)
ALWAYS = replace(SHARE, share=1.0, lower=float("nan"), upper=float("nan"), chance=1.0)
OTHERS = {"trails": 0.35, "equal": 0.05, "leads significantly": 0.25}
SHARES = (
    *(replace(SHARE, what=what, share=share) for what, share in OTHERS.items()),
    replace(SHARE, over="universes", share=0.58),
)
CUTOFF = audit.OpenedOptions("cutoff", ("5", "10"))
CROSSED = audit.CrossedOptions((CUTOFF, audit.OpenedOptions("seed", ("0", "1"), is_chance=True)))
P = {"either": 0.2, "median": 0.3, "net": 0.4, "largest": 0.5}
TESTED = audit.JointTest(900, 250, {"either": 0.4}, P, None, {"either": 0.05}, {"either of universes": 0.12})
ANSWER = audit.QuestionAnswer({"split": "random"}, 900, (SHARE, *SHARES), {}, TESTED, corrected=P)
SURVIVES = audit.Survival("a", "b", False, 0.7, 768, (), False)
JOINT = audit.JointDifference(ANSWER, 0.05)


def answered(**changes):
    return replace(ANSWER, **changes)


RULE = audit.LeadRule("a", "b", 2, (("cutoff below 10", "split temporal"), ("cutoff of 10 or more",)), 0.9, 0.7)
NOISE = audit.SeedNoise("training_seed", "mf", 1500, 0.081)
RETRAINED = audit.Retraining((NOISE,), 0.1, {"either": 0.001, "median": 0.2})
TRUE = {
    "system_a": "a",
    "system_b": "b",
    "true_a": 0.3,
    "true_b": 0.4,
    "truly_better": "b",
    "right": 0.7,
    "lower": 0.6,
    "upper": 0.8,
    "right_significantly": 0.5,
    "wrong_significantly": 0.001,
}
TAU = {"decision": "cutoff", "option": "5", "tau": 0.8, "lower": None, "upper": None}
BEST = {"metric": "P@5", "average": "mean", "rank": 1, "tau": 0.5, "clear": True}
ADVISED = tuple({**BEST, "setup": setup} for setup in ("random", "temporal"))
OTHERWISE = {**BEST, "setup": "user", "metric": "AP@5", "average": "median", "tau": 0.75, "clear": False}
INFLUENCE = {
    "decision": "cutoff",
    "kind": "equivalent",
    "variance": 0.1,
    "shapley": 0.6,
    "lower": 0.5,
    "upper": 0.7,
    "rest": 0.05,
    "method": "anova",
}
STUDENT = {
    "significance": "student",
    "correction": "none",
    "significant": 0.3,
    "start_p_corrected": 0.03,
    "start_significant": True,
}
SIGN = {**STUDENT, "significance": "sign", "correction": "holm", "start_p_corrected": 0.2, "start_significant": False}

SAID: list[tuple[Fact, str]] = [
    (SHARE, "60 % [50 %, 71 %]"),
    (replace(SHARE, share=0.999, lower=float("nan")), "over 99 %"),
    (CUTOFF, "cutoff (5, 10)"),
    (
        replace(CUTOFF, options=tuple("123456"), weighted=True, number=("k", 1.0, 6.0)),
        "cutoff (k, 6 from 1 to 6, weighted)",
    ),
    (CROSSED, "cutoff (5, 10), over seed (0, 1)"),
    (
        audit.FirstPlaces(
            ({"system": "knn", "share": 0.33}, {"system": "mf", "share": 0.67}, {"system": "pop", "share": 0.0})
        ),
        "Of 3 systems, mf is first in 67 % of the set-ups and knn in 33 %.",
    ),
    (
        audit.FirstPlaces(tuple({"system": name, "share": 0.4 - k / 20} for k, name in enumerate("abcde"))),
        "Of 5 systems, a is first in 40 % of the set-ups, b in 35 %, c in 30 % and d in 25 %; if several tie, each of them is first.",
    ),
    (
        audit.LeadAtStart("a", "b", False, -0.01234, -0.2, 0.00001, True),
        "Under the starting point a leads b (difference 0.0123, d_z 0.200, p <0.0001 by a single t-test over users).",
    ),
    (
        audit.LeadAtStart("a", "b", False, 0.01234, 0.2, 0.2, False),
        "Under the starting point a leads b, though not significantly (difference 0.0123, d_z 0.200, p = 0.2 by a single t-test over users).",
    ),
    (audit.LeadAtStart("a", "b", True, 0.0, 0.0, 1.0, False), "Under the starting point a and b are equal."),
    (
        audit.ChanceShare(0.938),
        "Of two equally good systems, one would lead in 93 % or more of these set-ups in 5 % of cases.",
    ),
    (audit.ChanceShare(1.0), "Of two equally good systems, one would lead in all of these set-ups in 5 % of cases."),
    (SURVIVES, "a leads b in 70 % of 768 set-ups; no change of one or two decisions reverses it."),
    (
        replace(SURVIVES, share=0.3, reversing=("condensed lists",)),
        "a leads b in only 30 % of 768 set-ups; with condensed lists b leads.",
    ),
    (
        replace(SURVIVES, reversing=("P@5", "condensed lists")),
        "a leads b in 70 % of 768 set-ups; with P@5 or condensed lists b leads.",
    ),
    (
        replace(
            SURVIVES, reversing=("the newest 20 % of ratings as test", "condensed lists", "cutoff 5", "threshold 3")
        ),
        "a leads b in 70 % of 768 set-ups; changing any one of 4 decisions reverses it.",
    ),
    (replace(SURVIVES, by_two=True), "a leads b in 70 % of 768 set-ups; only two changes together reverse it."),
    (replace(SURVIVES, equal=True), "a and b are equal as set up; a leads in 70 % of 768 set-ups."),
    (replace(SURVIVES, setups=1), "There is one set-up, so nothing can be said about other decisions."),
    (JOINT, "All set-ups together do not show that they differ (joint test, p = 0.2)."),
    (
        replace(JOINT, answer=answered(corrected={**P, "either": 0.001})),
        "Somewhere they differ, but neither leads overall: decisions change the winner (joint test, p = 0.001).",
    ),
    (
        replace(JOINT, answer=answered(corrected_retrained={**P, "either": 0.001, "median": 0.002})),
        "All set-ups together show that they differ (joint test with the spread of seeds, p = 0.001; median, p = 0.002).",
    ),
    (
        replace(JOINT, answer=answered(corrected={**P, "median": 0.002})),
        "All set-ups together show that they differ by the median (joint test, p = 0.002).",
    ),
    (
        replace(JOINT, answer=answered(corrected={**P, "largest": 0.002})),
        "Only the largest difference shows that they differ (joint test, p = 0.002).",
    ),
    (
        audit.LargestInfluences((INFLUENCE, {**INFLUENCE, "decision": "split", "shapley": 0.7})),
        "split explains 70 % of the variance of the effect size and cutoff 60 %.",
    ),
    (
        audit.LargestInfluences(
            ({**INFLUENCE, "method": "least squares"}, {**INFLUENCE, "kind": "chance", "shapley": 0.1})
        ),
        "cutoff explains 60 % of the variance of the effect size; chance has 10 %; 5 % is not explained.",
    ),
    (
        RULE,
        "b leads if: cutoff below 10 and split temporal; or cutoff of 10 or more; otherwise a. This is right for 90 % of the set-ups, and always naming the same one is right for 70 %.",
    ),
    (
        replace(RULE, paths=()),
        "The rule of three conditions never names b: always naming the same one is right for 70 %.",
    ),
    (
        replace(RULE, conditions=0, paths=()),
        "No rule of three conditions predicts better when b leads: always naming the same one is right for 70 %.",
    ),
    (NOISE, "mf differs significantly from itself in 8 % of 1,500 pairs that differ in training_seed alone"),
    (
        RETRAINED,
        "Effect of retraining: mf differs significantly from itself in 8 % of 1,500 pairs that differ in training_seed alone; chance alone changes the winner in 10 % of the set-ups; without the spread of seeds, that is for these trained models alone, the joint test has p = 0.001 (median z, p = 0.2).",
    ),
    (
        replace(RETRAINED, turned_by_chance=None),
        "No seed was opened, so all of this holds for these trained models: two training runs of the same algorithm can differ significantly too. training_seed and split_seed in an experiment file show how often they do.",
    ),
    (audit.PairedTest("student", "none"), "student"),
    (
        audit.SignificantByTest((STUDENT, SIGN)),
        "One is significantly better in this share of the set-ups, test by test: student in 30 % and sign with holm in 30 %.",
    ),
    (
        audit.StartByTest((STUDENT, SIGN)),
        "The test alone changes the significance under the starting point: the difference is significant by student (p = 0.03) and not by sign with holm (p = 0.2).",
    ),
    (
        audit.StartByTest((SIGN,)),
        "Under the starting point the difference is not significant by sign with holm (p = 0.2).",
    ),
    (audit.StartByTest((STUDENT,)), "Under the starting point the difference is significant by student (p = 0.03)."),
    (
        audit.TrueLead("P@10 on all true preferences", TRUE),
        "In truth (P@10 on all true preferences) b (0.4) is better than a (0.3). Most set-ups agree: b leads in 70 % [60 %, 80 %] of them, significantly in 50 %, and a leads significantly in under 1 %.",
    ),
    (
        audit.TrueLead("the given values", {**TRUE, "truly_better": "a", "right": 0.3, "lower": None}),
        "In truth (the given values) a (0.3) is better than b (0.4). Most set-ups do not agree: a leads in 30 % of them, significantly in 50 %, and b leads significantly in under 1 %.",
    ),
    (
        audit.TrueOrderReached(
            {**TAU, "decision": None}, TAU, {**TAU, "option": "10", "tau": 0.5, "lower": 0.4, "upper": 0.6}
        ),
        "The measured order of all systems agrees with the true one by a mean tau of 0.80 over all set-ups. The decision that matters most for it is cutoff: the mean tau is 0.80 with 5 and 0.50 [0.40, 0.60] with 10.",
    ),
    (
        audit.AdviceByDesign(ADVISED),
        "The advice on metrics is the same: P@5 scores highest in 2 of 2 set-ups; the choice is clear in 2.",
    ),
    (
        audit.AdviceByDesign((*ADVISED, OTHERWISE, {**BEST, "setup": "item", "rank": None})),
        "The advice on metrics depends on the set-up: P@5 scores highest in 2 of 3 set-ups and AP@5, median in 1; the choice is clear in 2; 1 could not be assessed.",
    ),
    (
        audit.DeclaredInvalid(2, (("cutoff", "50", "lists are short"),)),
        "Declared invalid here, with 2 combinations: cutoff 50 (lists are short).",
    ),
    (
        audit.AveragedRepetitions(3),
        "A user's values are averaged over 3 repetitions, and no p-value of the audit includes the spread between these: open split_seed and training_seed, which the joint test includes.",
    ),
    (
        audit.SampledCells(5000, 0.034),
        "The 5,000 set-ups are a balanced sample of all combinations; the counts of pairs of options differ from equal counts by 3.4 % on average.",
    ),
    (
        audit.NotSumsOverUsers(12, ("average median",)),
        "12 set-ups (average median) have an average that is not a sum over users: they are left out of the joint test, of chance and of intervals.",
    ),
    (
        audit.LeftOutCombinations({"too short": 2, "nobody is served": 1}),
        "3 combinations are left out (2: too short; 1: nobody is served).",
    ),
    (audit.LeftOutCombinations({"too short": 1}), "1 combination is left out (1: too short)."),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_of_an_audit_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert str(Fact.read(json.loads(json.dumps(fact.as_dict())))) == said


def test_every_fact_of_an_audit_has_a_sentence_here():
    kinds = {kind for kind in vars(audit).values() if isinstance(kind, type) and issubclass(kind, Fact)}
    assert {type(fact) for fact, _ in SAID} == {kind for kind in kinds if kind._said is not Fact._said}
