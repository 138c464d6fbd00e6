"""The k nearest rows of a matrix: users by their profiles, or items by their raters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield.recommenders._sparse import dense_product, unit_rows
from cranfield.recommenders.selection import largest
from cranfield.recommenders.work import blocks, each


def cosine_neighbours(rows: Any, k: int) -> Any:
    r"""Return the ``k`` rows most similar to each row by the cosine, as a sparse matrix of cosines.

    .. math:: cos(u, v) = \frac{\sum_i r_{ui} r_{vi}}{\lVert r_u \rVert \lVert r_v \rVert}

    over all columns, with 0 for missing entries. A row is not its own neighbour, and a neighbour has a positive cosine,
    so some rows may have fewer than ``k`` neighbours. Among equally similar rows, the one further up wins.

    Examples
    --------
    >>> from scipy import sparse
    >>> cosine_neighbours(sparse.csr_array([[3.0, 4.0], [4.0, 3.0], [0.0, 1.0]]), 1).toarray().round(2).tolist()
    [[0.0, 0.96, 0.0], [0.96, 0.0, 0.0], [0.8, 0.0, 0.0]]
    """
    unit = unit_rows(rows)
    columns = unit.T.tocsr()
    return nearest_rows(rows.shape[0], k, lambda block: dense_product(unit[block], columns))


def nearest_rows(
    count: int,
    k: int,
    similarity: Callable[[slice], NDArray[np.float64]],
    weight: Callable[[slice], NDArray[np.float64]] | None = None,
    *,
    own: bool = False,
) -> Any:
    """Return the ``k`` rows with the largest positive similarity to each row, as a sparse matrix.

    Parameters
    ----------
    similarity
        Computes the similarities of a block of rows to all rows.
    weight
        Computes the weights of neighbours in the result, if these are not the similarities.
    own
        Whether a row may be its own neighbour.
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
