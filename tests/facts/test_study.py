"""Facts of a study: each with its sentence, and back from JSON."""

# ruff: noqa: E501
from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cranfield.facts import Fact, study

MARGINS = (0.2, 0.21, 0.19, 0.2, 0.2)
PART = study.ClaimPart("a", MARGINS, 0.01, None, "holds", 0.15, 0.25)
EQUAL = study.ClaimPart("t = 100", (0.01,), 0.02, 1.0, "cannot tell", -0.03, 0.05)
AGAINST = replace(PART, name="b", margins=tuple(-m for m in MARGINS), lower=-0.25, upper=-0.15, verdict="does not hold")
FOUND = study.Finding("a is best", "6.1", "holds", "a 0.9, b 0.7", (PART,), "best", "paper", 5, users=6_040, key="best")
UNKNOWN = replace(
    FOUND,
    where="Table 2",
    verdict="cannot tell",
    splits=1,
    users=None,
    systems=21,
    parts=(study.ClaimPart("", (float("nan"),), 0.0, None, "cannot tell"),),
)

SAID: list[tuple[Fact, str]] = [
    (
        study.RULE,
        "A claim holds if the 95% interval of its margin lies above 0, does not hold if it lies below, and cannot be decided otherwise; of an equality the interval must contain 0, and be narrower than the difference that the paper denies. Intervals are Student's t over the splits, at least 5, with the error over users added for values of systems, and in valcarce2018 and valcarce2020 that over bootstrap draws of systems for statements about metrics. With fewer splits only the error over users can decide, and leaves the splits out. A claim of several parts holds if all of them do, and does not hold if one does not (by simultaneous intervals), or in part if another one holds.",
    ),
    (PART, "a +0.2 [+0.15, +0.25], holds"),
    (EQUAL, "t = 100 = 0: +0.01 [-0.03, +0.05], cannot tell"),
    (FOUND, "a is best (section 6.1; +0.2 [+0.15, +0.25]; 5 splits, 6,040 users)"),
    (
        replace(FOUND, parts=(PART, AGAINST), verdict="holds in part"),
        "a is best (section 6.1; -0.2 [-0.25, -0.15]; 1 of 2 parts hold; 5 splits, 6,040 users)",
    ),
    (
        replace(FOUND, parts=(AGAINST, AGAINST), verdict="does not hold"),
        "a is best (section 6.1; -0.2 [-0.25, -0.15]; 0 of 2 parts hold; the opposite holds; 5 splits, 6,040 users)",
    ),
    (
        replace(FOUND, parts=(EQUAL,), splits=1),
        "a is best (section 6.1; = 0: +0.01 [-0.03, +0.05]; 1 split, 6,040 users; splits are not included)",
    ),
    (
        study.ClaimCounts("valcarce2018", "ml", ("holds", "holds in part", "cannot tell"), ("holds",), 1, 5),
        "3 claims of valcarce2018 on ml (5 splits): 1 holds, 1 in part, 0 do not hold, 1 cannot be decided. Of 1 reading of ours, 1 holds, 0 do not hold, 0 cannot be decided. 1 more is true by construction.",
    ),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_of_a_study_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert Fact.read(json.loads(json.dumps(fact.as_dict()))) == fact


def test_a_claim_without_a_margin_shows_a_dash():
    assert str(UNKNOWN) == "a is best (Table 2; –; 1 split, 21 systems)"


def test_claims_of_one_group_count_once_and_readings_of_ours_apart():
    again = replace(FOUND, claim="a leads", verdict="cannot tell")
    ours = replace(FOUND, group="ours", source="our reading", verdict="does not hold")
    made = replace(FOUND, group="made", source="by construction")
    counts = study.ClaimCounts.of("s", "ml", [FOUND, again, ours, made])
    assert (counts.paper, counts.ours, counts.construction, counts.splits) == (
        ("cannot tell",),
        ("does not hold",),
        1,
        5,
    )
    one_more = study.ClaimCounts.of("s", "ml", [FOUND, FOUND.on("other")])
    assert one_more.paper == ("holds", "holds")


def test_every_fact_of_a_study_has_a_sentence_here():
    kinds = {kind for kind in vars(study).values() if isinstance(kind, type) and issubclass(kind, Fact)}
    assert {type(fact) for fact, _ in SAID} == kinds - {Fact}
