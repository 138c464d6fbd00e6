"""How a tool registers what it means by a metric."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cranfield.metrics import Metric
from cranfield.metrics.dialects import TOOLS, Tool, Users


@pytest.mark.parametrize(
    ("users", "expected"),
    [
        (Users.JUDGED, [0.5, 0.0, 0.0, 0.0]),
        (Users.RELEVANT, [0.5, 0.0, np.nan, np.nan]),
        (Users.JUDGED_WITH_LIST, [0.5, np.nan, 0.0, np.nan]),
    ],
)
def test_a_counted_user_counts_0_where_the_metric_is_undefined(users, expected, judged_of):
    # Users 1 and 2 have a relevant item, users 1 and 3 a list.
    judged = judged_of({1: {1: 1.0}, 3: {1: 1.0}}, {1: {1: 5}, 2: {1: 5}, 3: {1: 1}, 4: {1: 1}}, 4)
    tool = Tool("mine", "Mine", "1.0", users)

    @tool.dialect("P", "precision", "the same")
    def _first_only(judged):
        return np.array([0.5, np.nan, np.nan, np.nan])

    assert tool.dialects["P"].definition.function(judged) == pytest.approx(expected, nan_ok=True)


def _spellings(n, averages_ties):
    for tool in TOOLS.values():
        for name, dialect in tool.dialects.items():
            if dialect.definition.averages_ties == averages_ties:
                cutoff = "" if dialect.definition.cutoff == "none" else f"@{n}"
                yield f"{name}(dialect={tool.name}){cutoff}"


def _orders(scores):
    """Every order of a list that its ties allow."""
    groups = [[item for item in scores if scores[item] == value] for value in sorted(set(scores.values()))[::-1]]
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [item for order in orders for item in order]


_LISTS = st.dictionaries(st.integers(0, 4), st.sampled_from([1.0, 2.0]), min_size=1)
_PROFILES = st.dictionaries(st.integers(0, 7), st.integers(0, 5), min_size=1, max_size=5)


@given(scores=_LISTS, profile=_PROFILES, n=st.integers(1, 7))
@example(scores={0: 1.0, 1: 1.0, 2: 1.0}, profile={0: 5, 1: 1}, n=2)
def test_with_ties_averaged_a_dialect_is_its_mean_over_all_orders(scores, profile, n, judged_of, same):
    averaged = judged_of({0: scores}, {0: profile}, 3, ties="average")
    orders = dict(enumerate(_orders(scores)))
    runs = {user: {item: float(-place) for place, item in enumerate(order)} for user, order in orders.items()}
    every = judged_of(runs, dict.fromkeys(orders, profile), 3)
    for spelling in _spellings(n, averages_ties=True):
        metric = Metric.of(spelling)
        same(metric(averaged), [np.mean(metric(every))], spelling)


@given(scores=_LISTS, profile=_PROFILES, n=st.integers(1, 7))
@example(scores={0: 1.0, 1: 1.0, 2: 1.0}, profile={0: 5, 1: 1}, n=2)
def test_a_dialect_that_cannot_average_over_ties_breaks_them(scores, profile, n, judged_of, same):
    averaged, broken = (judged_of({0: scores}, {0: profile}, 3, ties=ties) for ties in ("average", "trec_eval"))
    for tool in ("elliot", "implicit", "replay"):
        metric = Metric.of(f"AUC(dialect={tool})" + ("" if tool == "elliot" else f"@{n}"))
        same(metric(averaged), metric(broken), tool)
