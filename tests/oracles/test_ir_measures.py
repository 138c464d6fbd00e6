"""As ir_measures for ERR and nDCG with exponential gain (its provider gdeval), and for the measures of trec_eval.

gdeval is a Perl script that knows grades up to 4 and prints five decimals.
"""

from __future__ import annotations

import shutil

import ir_measures
import numpy as np
import pytest

from cranfield import Ratings
from cranfield.judgments import Judgments, judge
from cranfield.metrics import Metric
from cranfield.rankings import read_run

PAIRS = {
    "nDCG@10": ir_measures.nDCG @ 10,
    "P@5": ir_measures.P(rel=3) @ 5,
    "AP@20": ir_measures.AP(rel=3) @ 20,
    "RR": ir_measures.RR(rel=3),
    "Rprec": ir_measures.Rprec(rel=3),
    "HitRate@3": ir_measures.Success(rel=3) @ 3,
    "bpref": ir_measures.Bpref(rel=3),
    "infAP(pool=judged)": ir_measures.infAP(rel=3),
    "P": ir_measures.SetP(rel=3),
    "Recall": ir_measures.SetR(rel=3),
    "F1": ir_measures.SetF(rel=3),
}
GDEVAL = {
    "ERR(rmax=4)@10": ir_measures.ERR @ 10,
    "ERR(rmax=4)@20": ir_measures.ERR @ 20,
    "nDCG(gain=exp)@10": ir_measures.nDCG(dcg="exp-log2") @ 10,
    "nDCG(gain=exp)@20": ir_measures.nDCG(dcg="exp-log2") @ 20,
}


def _world():
    rng = np.random.default_rng(3)
    items = np.arange(80).astype(str)
    run = {str(user): dict(zip(rng.permutation(items)[:40], rng.permutation(400)[:40] / 4)) for user in range(60)}
    test = {
        str(user): {item: int(rng.integers(0, 5)) for item in rng.choice(items, rng.integers(5, 40), replace=False)}
        for user in range(60)
    }
    return run, test


def _compare(name, measure, tolerance):
    run, test = _world()
    rows = [(user, item, grade) for user, profile in test.items() for item, grade in profile.items()]
    judgments = Judgments.of(Ratings.of(*(list(column) for column in zip(*rows))), 3.0)
    judged = judge(read_run(run, name="run"), judgments)
    theirs = {one.query_id: one.value for one in ir_measures.iter_calc([measure], test, run)}
    expected = [theirs[user] for user in judgments.user_ids.ids(judgments.users).to_list()]
    np.testing.assert_allclose(np.nan_to_num(Metric.of(name)(judged)), expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", PAIRS)
def test_equals(name):
    _compare(name, PAIRS[name], 1e-9)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval needs Perl")
@pytest.mark.parametrize("name", GDEVAL)
def test_equals_gdeval_to_its_five_decimals(name):
    _compare(name, GDEVAL[name], 1.01e-5)
