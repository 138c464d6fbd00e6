# mypy: disable-error-code="untyped-decorator"
"""Compiled products and selections. Importing this module imports numba, so get it through `kernels`.

They return exactly the numbers that SciPy and NumPy return, but faster, and release the interpreter lock, so that
several blocks can be processed in parallel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def sparse_product(
    indptr: Any, indices: Any, data: Any, right_indptr: Any, right_indices: Any, right_data: Any, product: Any
) -> None:
    """Add the product of two sparse matrices to a dense one."""
    for row in range(len(indptr) - 1):
        for place in range(indptr[row], indptr[row + 1]):
            value, middle = data[place], indices[place]
            for other in range(right_indptr[middle], right_indptr[middle + 1]):
                product[row, right_indices[other]] += value * right_data[other]


@njit(cache=True, nogil=True)
def sparse_times_dense(indptr: Any, indices: Any, data: Any, right: Any, product: Any) -> None:
    """Add the product of a sparse and a dense matrix to a dense one."""
    for row in range(len(indptr) - 1):
        for place in range(indptr[row], indptr[row + 1]):
            value, middle = data[place], indices[place]
            for column in range(right.shape[1]):
                product[row, column] += value * right[middle, column]


@njit(cache=True, nogil=True, inline="always")
def _worse(value: float, column: int, other: float, other_column: int) -> bool:
    """Return whether an entry comes after another: it is smaller, or equal and further right."""
    return value < other or (value == other and column > other_column)


@njit(cache=True, nogil=True)
def _sink(values: Any, columns: Any, place: int, count: int) -> None:
    """Restore the heap, the worst entry on top, below ``place``."""
    value, column = values[place], columns[place]
    while True:
        child = 2 * place + 1
        if child >= count:
            break
        right = child + 1
        if right < count and _worse(values[right], columns[right], values[child], columns[child]):
            child = right
        if not _worse(values[child], columns[child], value, column):
            break
        values[place], columns[place] = values[child], columns[child]
        place = child
    values[place], columns[place] = value, column


@njit(cache=True, nogil=True)
def largest(block: Any, columns: Any, values: Any) -> None:
    """Fill the rows of ``columns`` and ``values`` with the largest entries of each row of ``block``, best first."""
    rows, width = block.shape
    k = columns.shape[1]
    for row in range(rows):
        heap, where = values[row], columns[row]
        count = 0
        for column in range(width):
            value = block[row, column]
            if count == k:
                if value > heap[0]:
                    heap[0], where[0] = value, column
                    _sink(heap, where, 0, k)
            elif not np.isnan(value):
                heap[count], where[count] = value, column
                count += 1
                if count == k:
                    for place in range(k // 2 - 1, -1, -1):
                        _sink(heap, where, place, k)
        if count < k:
            for place in range(count // 2 - 1, -1, -1):
                _sink(heap, where, place, count)
            column = 0
            for place in range(count, k):  # the rest of the row is NaN
                while not np.isnan(block[row, column]):
                    column += 1
                heap[place], where[place] = block[row, column], column
                column += 1
        for last in range(count - 1, 0, -1):
            heap[0], heap[last] = heap[last], heap[0]
            where[0], where[last] = where[last], where[0]
            _sink(heap, where, 0, last)
