"""Facts: what results hold, as typed numbers and names, and the only place that puts them into words.

A fact is a frozen dataclass. Results compute facts and keep them; a sentence is made of a fact's fields when it is
shown, so that the terminal, the page, LaTeX and JSON say the same. Each module has the facts of one kind of result.
"""

from cranfield.facts import (
    across,
    assessment,
    audit,
    bias,
    comparison,
    demo,
    experiment,
    gate,
    ratings,
    scores,
    segment,
    split,
    study,
    unjudged,
)
from cranfield.facts.fact import Fact, sentences
from cranfield.facts.numbers import ends_text, gain_percent, p_equals, p_text, share_text

__all__ = [
    "Fact",
    "across",
    "assessment",
    "audit",
    "bias",
    "comparison",
    "demo",
    "ends_text",
    "experiment",
    "gain_percent",
    "gate",
    "p_equals",
    "p_text",
    "ratings",
    "scores",
    "segment",
    "sentences",
    "share_text",
    "split",
    "study",
    "unjudged",
]
