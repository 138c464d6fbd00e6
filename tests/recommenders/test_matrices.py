"""Neighbours: the k nearest by the cosine, never oneself, ties to the first."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from cranfield.recommenders.matrices import cosine_neighbours, largest


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 9)), elements=st.sampled_from([0, 1, 2, np.nan])),
    st.integers(0, 10),
)
def test_largest_is_a_stable_sort_cut_at_k(block, k):
    columns, values = largest(block, k)
    for row, found, value in zip(block, columns, values, strict=True):
        expected = sorted(range(len(row)), key=lambda c: (np.isnan(row[c]), -np.nan_to_num(row[c]), c))[:k]
        assert found.tolist() == expected
        assert np.array_equal(value, row[expected], equal_nan=True)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 7), st.integers(1, 5)), elements=st.sampled_from([0, 0, 1, 2, 5])),
    st.integers(1, 7),
)
def test_cosine_neighbours_are_those_of_the_definition(matrix, k):
    found = cosine_neighbours(sparse.csr_array(matrix), k).toarray()
    lengths = np.linalg.norm(matrix, axis=1)
    for u in range(len(matrix)):
        cosines = {}
        for v in range(len(matrix)):
            if v != u and matrix[u] @ matrix[v] > 0:
                cosines[v] = matrix[u] @ matrix[v] / lengths[u] / lengths[v]
        assert np.count_nonzero(found[u]) == min(k, len(cosines))
        # Rounding may decide which of nearly equal neighbours is kept, but not how similar they are.
        assert np.allclose(np.sort(found[u][found[u] > 0]), np.sort(list(cosines.values()))[-k:])
        for v in np.flatnonzero(found[u]):
            assert np.isclose(found[u, v], cosines[v])
