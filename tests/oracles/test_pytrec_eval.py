"""The same numbers as pytrec_eval (trec_eval) for every measure that both have.

pytrec_eval reads scores as float32, so these are multiples of 1/4; undefined values are 0 there.
"""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from cranfield import Ratings
from cranfield.judgments import Judgments, judge
from cranfield.measures import measure
from cranfield.metrics import Metric
from cranfield.rankings import read_run

READINGS = ("judged", "unjudged", "pooled")
CUTS = (1, 3, 5, 10, 30)
NAMES = {
    "set_P": "P",
    "set_recall": "Recall",
    "set_F": "F1",
    "map": "AP",
    "ndcg": "nDCG",
    "recip_rank": "RR",
    "bpref": "bpref",
    "infAP": "infAP(pool=judged)",
    "Rprec": "Rprec",
}
NAMES |= {f"P_{n}": f"P@{n}" for n in CUTS} | {f"recall_{n}": f"Recall@{n}" for n in CUTS}
NAMES |= {f"map_cut_{n}": f"AP@{n}" for n in CUTS} | {f"ndcg_cut_{n}": f"nDCG@{n}" for n in CUTS}
NAMES |= {f"success_{n}": f"HitRate@{n}" for n in CUTS}
_CUT = ",".join(map(str, CUTS))
MEASURES = {"set_P", "set_recall", "set_F", "map", "ndcg", "recip_rank", "bpref", "infAP", "Rprec"} | {
    f"{name}.{_CUT}" for name in ("P", "recall", "map_cut", "ndcg_cut", "success")
}

LISTS = st.dictionaries(
    st.integers(0, 5).map(str),
    st.dictionaries(st.integers(0, 40).map(str), st.integers(-8, 8).map(lambda score: score / 4), min_size=1),
    min_size=1,
)
PROFILES = st.dictionaries(
    st.integers(0, 6).map(str), st.dictionaries(st.integers(0, 40).map(str), st.integers(0, 5), min_size=1), min_size=1
)


def _compare(run, test, level, negative_grades="judged"):
    rows = [(user, item, grade) for user, profile in test.items() for item, grade in profile.items()]
    judgments = Judgments.of(Ratings.of(*(list(column) for column in zip(*rows))), float(level), negative_grades)
    judged = judge(read_run(run, name="run"), judgments)
    theirs = pytrec_eval.RelevanceEvaluator(test, MEASURES, relevance_level=level).evaluate(run)
    users = judgments.user_ids.ids(judgments.users).to_list()
    for their_name, name in NAMES.items():
        values = np.nan_to_num(Metric.of(name)(judged))
        # pytrec_eval leaves out users without a list; trec_eval -c counts them as 0.
        expected = [theirs[user][their_name] if user in theirs else 0.0 for user in users]
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-9, err_msg=name)


@given(LISTS, PROFILES, st.integers(1, 5))
def test_small_worlds_with_ties_and_gaps(run, test, level):
    _compare(run, test, level)


@pytest.mark.parametrize("level", [1, 4])
def test_a_larger_world_with_ties_and_gaps(level):
    rng = np.random.default_rng(level)
    items = np.arange(500).astype(str)
    run = {
        str(user): dict(zip(rng.choice(items, rng.integers(1, 120), replace=False), rng.integers(0, 60, 120) / 4))
        for user in range(300)
        if user % 7
    }
    test = {
        str(user): {item: int(rng.integers(0, 6)) for item in rng.choice(items, rng.integers(1, 200), replace=False)}
        for user in range(320)
        if user % 11
    }
    _compare(run, test, level)


GRADED = st.dictionaries(
    st.integers(0, 6).map(str),
    st.dictionaries(st.integers(0, 40).map(str), st.sampled_from([-3, -2, -1, -1, 0, 1, 2, 5]), min_size=1).filter(
        lambda profile: max(profile.values()) >= 0
    ),
    min_size=1,
)


@given(LISTS, GRADED, st.integers(1, 5))
def test_negative_grades_read_as_pooled_are_those_of_trec_eval(run, test, level):
    _compare(run, test, level, "pooled")


def test_a_negative_grade_is_judged_here_unless_it_is_read_as_trec_eval_reads_it():
    run, test = {"a": {"x": 2.0, "y": 1.0}}, {"a": {"x": -1, "y": 1}}
    theirs = pytrec_eval.RelevanceEvaluator(test, {"bpref"}).evaluate(run)["a"]["bpref"]
    assert theirs == 1.0
    found = {
        reading: measure({"run": run}, test, "bpref", negative_grades=reading).values.item() for reading in READINGS
    }
    assert found == {"judged": 0.0, "unjudged": 1.0, "pooled": 1.0}
