"""Facts of a study: each with its sentence, and back from JSON."""

# ruff: noqa: E501
from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cranfield.facts import Fact, study

FOUND = study.Finding("a is best", "6.1", "holds", "a 0.9, b 0.7", 0.2, 0.95, 0.05, "draws of systems")
REPEATED = study.OverRepetitions(9, 10, "a 0.9, b 0.7")

SAID: list[tuple[Fact, str]] = [
    (
        study.OF_SPLITS,
        "A claim holds if its margin is above 0 on average and in at least 90% of the splits that it was measured on; it does not hold if it is below 0 in as many; otherwise it cannot be decided.",
    ),
    (
        study.OF_SYSTEMS,
        "A claim holds if its margin is above 0 for all systems and in at least 90% of 200 bootstrap draws of the systems; it does not hold if it is below 0 in as many; otherwise it cannot be decided. With fewer than five systems nothing can be decided.",
    ),
    (
        study.OF_REPETITIONS,
        "Each repetition is a study with other random choices. A claim holds if it holds in at least 90% of the repetitions, and does not hold if it does not hold in as many; otherwise it cannot be decided.",
    ),
    (REPEATED, "holds in 9 of 10 repetitions; first: a 0.9, b 0.7"),
    (FOUND, "a is best (section 6.1; so in 95.0 % of the draws of systems, the opposite in 5.0 %)"),
    (replace(FOUND, where="Table 2", sure=None, evidence=REPEATED), "a is best (Table 2)"),
    (
        study.ClaimCounts("valcarce2018", "ml", ("holds", "holds", "cannot tell")),
        "3 claims of valcarce2018 on ml: 2 hold, 0 do not hold, 1 cannot be decided.",
    ),
]


@pytest.mark.parametrize(("fact", "said"), SAID, ids=lambda value: type(value).__name__)
def test_a_fact_of_a_study_is_said_in_these_words_and_comes_back_from_json(fact, said):
    assert str(fact) == said
    assert Fact.read(json.loads(json.dumps(fact.as_dict()))) == fact


def test_every_fact_of_a_study_has_a_sentence_here():
    kinds = {kind for kind in vars(study).values() if isinstance(kind, type) and issubclass(kind, Fact)}
    assert {type(fact) for fact, _ in SAID} == kinds - {Fact}
