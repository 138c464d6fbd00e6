"""Sparse matrices of ratings: products, the largest entries of rows, and the nearest rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.data import Ratings
from cranfield.recommenders.work import blocks, each, kernels, read_only


def rating_matrix(train: Ratings, *, binary: bool = False) -> Any:
    """Return the users × items matrix of ratings in double precision; 1 for every rating if ``binary``."""
    from scipy import sparse

    data = np.ones(len(train)) if binary else np.asarray(train.values, dtype=np.float64)
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
    return divided_rows(matrix, np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).reshape(-1)))


def divided_rows(matrix: Any, sizes: NDArray[Any]) -> Any:
    """Return the matrix with its rows divided by ``sizes``, unless they are 0."""
    return with_data(matrix, matrix.data / np.where(sizes > 0, sizes, 1)[row_of_entries(matrix)])


def dense_product(left: Any, right: Any) -> NDArray[np.float64]:
    """Return the product of two sparse matrices in rows (CSR) as a dense block."""
    block: NDArray[np.float64]
    compiled = kernels(left.nnz * (right.nnz / max(right.shape[0], 1)))
    if compiled is None:
        block = (left @ right).toarray()
    else:
        block = np.zeros((left.shape[0], right.shape[1]))
        stored = [part for of in (left, right) for part in (of.indptr, read_only(of.indices), of.data)]
        compiled.sparse_product(*stored, block)
    return block


def row_products(left: Any, right: Any) -> Callable[[slice], NDArray[np.float64]]:
    """Return a function that computes the inner products of a block of rows with all rows of another matrix."""
    columns = right.T.tocsr()
    return lambda block: dense_product(left[block], columns)


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

    BLAS adds in different orders on different processors, so the processor would decide how ties are broken.
    """
    largest = np.abs(block).max(axis=1, initial=0, keepdims=True)
    grid = np.ldexp(1.0, np.frexp(largest)[1] - 36)
    block /= grid
    np.rint(block, out=block)
    block *= grid
    return block


def nan_for_empty(block: NDArray[Any], profiles: Any) -> NDArray[Any]:
    """Write NaN into the rows of empty profiles."""
    block[np.diff(profiles.indptr) == 0] = np.nan
    return block


def largest(block: NDArray[Any], k: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the columns of the ``k`` largest entries of each row, best first, and these entries.

    Among equal entries, those further left are kept, and come first. NaN comes last.
    """
    rows, width = block.shape
    k = min(k, width)
    compiled = kernels(block.size, if_loaded=True) if k else None
    if compiled is not None:
        columns, values = np.empty((rows, k), dtype=np.int64), np.empty((rows, k), dtype=block.dtype)
        compiled.largest(block, columns, values)
        return columns, values
    keys = np.negative(block)  # NaN sorts last, so the smallest keys are the largest entries
    if k == 0:
        return np.zeros((rows, 0), dtype=np.int64), block[:, :0]
    if k < width:
        keep = _smallest(keys, k)
        columns = np.nonzero(keep)[1].reshape(rows, k)
        keys = keys[keep].reshape(rows, k)
    else:
        columns = np.broadcast_to(np.arange(width), (rows, width))
    order = np.argsort(keys, axis=1, kind="stable")
    columns = np.take_along_axis(columns, order, axis=1)
    return columns, np.take_along_axis(block, columns, axis=1)


def _smallest(keys: NDArray[Any], k: int) -> NDArray[np.bool_]:
    """Mark exactly ``k`` entries of each row: the smallest, and of equal ones those further left."""
    limit = np.partition(keys, k - 1, axis=1)[:, k - 1 : k]
    keep = keys <= limit
    missing = np.isnan(limit[:, 0])
    keep[missing] = True  # all numbers are kept in these rows, since the limit is NaN
    crowded = np.flatnonzero(np.count_nonzero(keep, axis=1) > k)
    if len(crowded):
        some = keys[crowded]
        at_limit = (some == limit[crowded]) | (np.isnan(some) & missing[crowded, None])
        room = k - np.count_nonzero(keep[crowded] & ~at_limit, axis=1)
        keep[crowded] &= ~at_limit | (np.cumsum(at_limit, axis=1) <= room[:, None])
    return keep


def cosine_neighbours(rows: Any, k: int) -> Any:
    r"""Return the ``k`` rows most similar to each row by the cosine, as a sparse matrix of cosines.

    .. math:: cos(u, v) = \frac{\sum_i r_{ui} r_{vi}}{\lVert r_u \rVert \lVert r_v \rVert}

    over all columns, with 0 for missing entries. A row is not its own neighbour, and a neighbour has a positive cosine,
    so some rows may have fewer than ``k`` neighbours. Among equally similar rows, the one further up wins.
    """
    unit = unit_rows(rows)
    return nearest_rows(rows.shape[0], k, row_products(unit, unit))


def nearest_rows(
    count: int,
    k: int,
    similarity: Callable[[slice], NDArray[np.float64]],
    weight: Callable[[slice], NDArray[np.float64]] | None = None,
    *,
    own: bool = False,
) -> Any:
    """Return the ``k`` rows with the largest positive similarity to each row, as a sparse matrix.

    ``similarity`` computes the similarities of a block of rows to all rows, and ``weight`` the entries of the result if
    they are not the similarities. ``own`` says whether a row may be its own neighbour.
    """
    from scipy import sparse

    def one_block(block: slice) -> Any:
        similarities = similarity(block)
        rows = np.arange(block.start, block.stop)
        if not own:
            similarities[rows - block.start, rows] = 0
        return nearest_columns(similarities, k, None if weight is None else weight(block))

    pieces = each(one_block, blocks(count, count), "Finding neighbours")
    return sparse.vstack(pieces, format="csr") if pieces else sparse.csr_array((0, count))


def nearest_columns(similarities: NDArray[np.float64], k: int, weights: NDArray[np.float64] | None = None) -> Any:
    """Return the ``k`` columns with the largest positive similarity in each row, as a sparse matrix.

    Its entries are the similarities, or the ``weights`` at the same positions.
    """
    from scipy import sparse

    columns, values = largest(similarities, k)
    near = values > 0
    if weights is not None:
        values = np.take_along_axis(weights, columns, axis=1)
    ends = np.append(0, np.cumsum(np.count_nonzero(near, axis=1)))
    nearest = sparse.csr_array((values[near], columns[near], ends), shape=similarities.shape)
    nearest.sort_indices()
    return nearest
