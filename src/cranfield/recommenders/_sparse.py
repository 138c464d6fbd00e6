"""Sparse matrices of ratings, and the operations that all families share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.recommenders.work import kernels, read_only


def rating_matrix(train: Ratings, values: NDArray[Any] | None = None) -> Any:
    """Return the users × items matrix of ratings (or of other ``values``) in double precision."""
    from scipy import sparse

    data = np.asarray(train.values if values is None else values, dtype=np.float64)
    pointers = train.indptr.astype(np.int32) if len(train) < 2**31 else train.indptr
    return sparse.csr_array((data, train.items, pointers), shape=(train.n_users, train.n_items))


def ones_like(matrix: Any) -> Any:
    """Return a matrix with 1 wherever ``matrix`` has a stored entry."""
    return with_data(matrix, np.ones(len(matrix.data)))


def with_data(matrix: Any, data: NDArray[Any]) -> Any:
    """Return a matrix with other ``data`` at the stored places of ``matrix``."""
    from scipy import sparse

    return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def row_of_entries(matrix: Any) -> NDArray[np.int64]:
    """Return the row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def unit_rows(matrix: Any) -> Any:
    """Return the matrix with its rows divided by their Euclidean lengths; empty rows stay empty."""
    lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).reshape(-1))
    return with_data(matrix, matrix.data / np.where(lengths > 0, lengths, 1)[row_of_entries(matrix)])


def dense_product(left: Any, right: Any) -> NDArray[np.float64]:
    """Return the product of two sparse matrices in rows (CSR) as a dense block."""
    block: NDArray[np.float64]
    compiled = kernels(left.nnz * (right.nnz / max(right.shape[0], 1)))
    if compiled is None:
        block = (left @ right).toarray()
    else:
        block = np.zeros((left.shape[0], right.shape[1]))
        compiled.sparse_product(*_stored(left), *_stored(right), block)
    return block


def sparse_times_dense(left: Any, right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the product of a sparse matrix in rows (CSR) and a dense one."""
    compiled = kernels(left.nnz * right.shape[1])
    if compiled is None:
        return np.asarray(left @ right)
    product = np.zeros((left.shape[0], right.shape[1]))
    compiled.sparse_times_dense(*_stored(left), right, product)
    return product


def _stored(matrix: Any) -> tuple[NDArray[Any], ...]:
    return matrix.indptr, read_only(matrix.indices), matrix.data


def product_or_nan(left: Any, right: Any) -> NDArray[np.float64]:
    """Return the product of two sparse matrices as a dense block with NaN where nothing contributed."""
    block = dense_product(left, right)
    nothing = block == 0
    if nothing.any() and not all((matrix.data > 0).all() for matrix in (left, right)):
        # Contributions may be 0, or cancel each other out.
        nothing = dense_product(ones_like(left), ones_like(right)) == 0
    block[nothing] = np.nan
    return block


def without_rounding_errors(block: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round the scores in place to 2⁻³⁶ of the largest in their row, which removes the rounding errors of BLAS.

    BLAS adds in different orders on different processors. Without rounding, the processor would decide how ties are
    broken.

    Examples
    --------
    >>> np.unique(without_rounding_errors(np.array([[0.3, 0.1 + 0.2, 5.0]]))).size
    2
    """
    largest = np.abs(block).max(axis=1, initial=0, keepdims=True)
    grid = np.ldexp(1.0, np.frexp(largest)[1] - 36)
    block /= grid
    np.rint(block, out=block)
    block *= grid
    return block


def nan_for_untrained(
    block: NDArray[Any], train_counts: NDArray[np.int64], profile_sizes: NDArray[np.int64]
) -> NDArray[Any]:
    """Write NaN into the columns of items and the rows of users without training ratings."""
    block[:, train_counts == 0] = np.nan
    block[profile_sizes == 0] = np.nan
    return block
