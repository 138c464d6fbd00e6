"""pytrec_eval and we put the items of a list into the same order, ties included."""

from __future__ import annotations

import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from cranfield.rankings import read_run

ITEMS = st.one_of(st.integers(0, 120).map(str), st.text("aZ_é-9", min_size=1, max_size=3))
# Scores that differ in single precision, which pytrec_eval uses.
SCORES = st.sampled_from([-1.5, 0.0, 0.25, 0.5, 3.0])


def _order_of_pytrec_eval(scores):
    """The rank of an item is one over the reciprocal rank of the list when it alone is relevant."""
    evaluator = pytrec_eval.RelevanceEvaluator({item: {item: 1} for item in scores}, {"recip_rank"})
    measured = evaluator.evaluate(dict.fromkeys(scores, scores))
    return sorted(scores, key=lambda item: round(1 / measured[item]["recip_rank"]))


@given(st.dictionaries(ITEMS, SCORES, min_size=1, max_size=12))
def test_lists_have_the_order_of_pytrec_eval(scores):
    assert read_run({"u": scores}).frame()["item"].cast(str).to_list() == _order_of_pytrec_eval(scores)


@given(st.dictionaries(st.integers(0, 120), SCORES, min_size=1, max_size=12))
def test_integer_ids_are_ordered_as_the_text_they_are_written_as(scores):
    written = {str(item): score for item, score in scores.items()}
    assert [str(item) for item in read_run({"u": scores}).frame()["item"]] == _order_of_pytrec_eval(written)
