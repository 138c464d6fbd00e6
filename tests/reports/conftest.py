"""What the tests of the report share: names that mean harm, and scores of them."""

from __future__ import annotations

import html.parser

import numpy as np
import pytest

import cranfield as cf
from cranfield.assessments import assess

EVIL = ("<script>alert(1)</script>", "\"quoted\" & 'single'", "=SUM(A1)", "</style><img src=x onerror=alert(2)>")


class Markup(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="session")
def rows_shown():
    """Return a function that counts the rows of an object's tables, and sees that its markup is whole and harmless."""

    def count(value: object) -> int:
        reader = Markup()
        reader.feed(value._repr_html_())
        assert reader.open == []
        assert "script" not in reader.tags
        assert "table" in reader.tags
        return reader.tags.count("tr") - reader.tags.count("thead")

    return count


@pytest.fixture(scope="session")
def evil():
    return EVIL


@pytest.fixture(scope="session")
def make_scores():
    """Return a function that measures random lists of named systems against a random test set."""

    def make(systems=EVIL, users=40, items=30, metrics=("P@5", "nDCG@5", "RR@10"), seed=0, **options):
        rng = np.random.default_rng(seed)
        ids = [f"user '{u}\" <b>" for u in range(users)]
        pairs = [(u, i) for u in ids for i in rng.permutation(items)[:8]]
        test = cf.Ratings.of([u for u, _ in pairs], [int(i) for _, i in pairs], rng.integers(1, 6, len(pairs)))
        runs = {}
        for s, name in enumerate(systems):
            served = ids if s != 1 else ids[: users // 2]
            runs[name] = {u: [int(i) for i in rng.permutation(items)[: 10 + s]] for u in served}
        return cf.measure(runs, test, metrics, threshold=options.pop("threshold", 4), **options)

    return make


@pytest.fixture(scope="session")
def scores(make_scores):
    return make_scores()


@pytest.fixture(scope="session")
def many_scores(make_scores):
    """Return scores of 200 systems by 50 metrics."""
    metrics = tuple(f"{name}@{n}" for name in ("P", "Recall", "nDCG", "AP", "RR") for n in range(1, 11))
    return make_scores(systems=tuple(f"system {s}" for s in range(200)), users=30, metrics=metrics)


@pytest.fixture(scope="session")
def assessment():
    world = cf.simulate.world(users=60, items=40, ratings=1_500)
    split = cf.splits.random(world.ratings, train=0.8)
    found = cf.recommend(split, {EVIL[0]: "random", EVIL[1]: "popularity", "c": "average"}, length=20)
    return assess(found, split.test, ["P@5", "nDCG@10", "RR@10"], threshold=4, sizes=[1, 0.5], samples=3)


@pytest.fixture(scope="session")
def comparison(scores):
    return cf.compare(scores)
