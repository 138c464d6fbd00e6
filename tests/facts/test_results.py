"""No field of a result holds a sentence: what a result says is made of its facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

import pytest

import cranfield as cf
from cranfield.facts import Fact

SENTENCE = 5  # words; names, titles and spellings have fewer


@pytest.fixture(scope="module")
def results():
    world = cf.simulate.world(users=60, items=40, ratings=900, seed=1)
    split = cf.splits.random(world.ratings, train=0.7)
    runs = cf.recommend(split, ["popularity", "knn(k=5)", "random"], length=10)
    scores = cf.measure(runs, split.test, ["P@5", "nDCG@10"], train=split.train)
    comparison = cf.compare(scores, baseline="random")
    return {
        "split": split,
        "runs": runs,
        "check": cf.check_split(split, name="random"),
        "scores": scores,
        "comparison": comparison,
        "segments": cf.compare_segments(scores.segments("activity", train=split.train)),
        "gate": comparison.no_worse(by=0.1),
        "assessment": cf.assess(runs, split.test, ["P@5", "RR"], samples=2, sizes=[1, 0.5]),
        "bias": cf.bias(runs=runs, test=split.test, train=split.train),
        "across": cf.compare_datasets({"x": scores, "y": scores}),
        "tipping": cf.tipping_points(runs, split.test, ["P@5"]),
        "suggestions": cf.suggest_judgments(runs[:2], split.test, "P@5"),
    }


def texts(value: object, where: str) -> Iterator[tuple[str, str]]:
    """Yield the texts in the fields of a value, except in facts, with the names of the fields."""
    if isinstance(value, str):
        yield where, value
    elif is_dataclass(value) and not isinstance(value, Fact):
        for field in fields(value):
            yield from texts(getattr(value, field.name), f"{where}.{field.name}")
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from texts(one, f"{where}[{name!r}]")
    elif isinstance(value, tuple | list):
        for one in value:
            yield from texts(one, where)


def test_no_field_of_a_result_holds_a_sentence(results):
    held = [(where, text) for name, result in results.items() for where, text in texts(result, name)]
    assert len(held) > 100
    assert not [(where, text) for where, text in held if len(text.split()) >= SENTENCE]
