"""The compiled kernels give the very numbers of NumPy and SciPy."""

from __future__ import annotations

import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as hnp
from scipy import sparse

import cranfield as cf
from cranfield.recommenders import SYSTEMS, work
from cranfield.recommenders.matrices import dense_product, largest

pytest.importorskip("numba")

VALUES = st.sampled_from([0.0, -0.0, 0.1, 0.1 + 2**-55, 1.0, -1.5, np.nan, np.inf, -np.inf])
BLOCKS = hnp.arrays(np.float64, st.tuples(st.integers(0, 4), st.integers(0, 9)), elements=VALUES)


@pytest.fixture
def compiled(monkeypatch):
    """Make kernels worth compiling, whatever the size."""

    def switch(on: bool) -> None:
        monkeypatch.setattr(work, "_WORTH_COMPILING", 0 if on else float("inf"))

    return switch


def both_ways(function, *arguments):
    before = work._WORTH_COMPILING
    try:
        found = []
        for least in (0, float("inf")):
            work._WORTH_COMPILING = least
            found.append(function(*arguments))
        return found
    finally:
        work._WORTH_COMPILING = before


@given(BLOCKS, st.integers(0, 11))
def test_the_same_entries_are_the_largest(block, k):
    (columns, values), _ = both_ways(largest, block, k)
    # If numba is loaded, this function is compiled whatever the size.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[largest.__module__], "kernels", lambda *_, **__: None)
        plain_columns, plain_values = largest(block, k)
    np.testing.assert_array_equal(columns, plain_columns)
    np.testing.assert_array_equal(values, plain_values)


@given(st.integers(0, 2**32), st.floats(0, 1), st.floats(0, 1))
def test_the_same_products_to_the_last_bit(seed, filled, right_filled):
    draw = np.random.default_rng(seed)
    left = sparse.csr_array(draw.normal(size=(5, 7)) * (draw.random((5, 7)) < filled))
    right = sparse.csr_array(draw.normal(size=(7, 6)) * (draw.random((7, 6)) < right_filled))
    product, plain = both_ways(dense_product, left, right)
    np.testing.assert_array_equal(product, plain)


@pytest.mark.parametrize(
    "system", [name for name in SYSTEMS if name not in {"bprmf", "mf-pointwise", "wrmf", "svd", "lda", "plsa"}]
)
def test_every_system_gives_the_same_lists_with_and_without_them(system, compiled):
    split = cf.splits.random(cf.simulate.world(users=50, items=40, ratings=800, seed=3).ratings, train=0.8, seed=1)
    runs = []
    for on in (True, False):
        compiled(on)
        (run,) = cf.recommend(split, system, length=10)
        runs.append(run.frame())
    assert runs[0].equals(runs[1])
