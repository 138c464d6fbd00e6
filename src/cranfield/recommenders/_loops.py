# mypy: disable-error-code="untyped-decorator"
"""Compiled loops. Importing this module imports numba, so get it through `compiled_loops` or `kernels`.

A loop whose first arguments are ``first`` and ``last`` works only on these rows; `over_rows` calls it in threads. With
Numba's own threads (``parallel=True``) compiling would take three times as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_GOLDEN, _MIX_1, _MIX_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31, _32 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(32)


@njit(cache=True, inline="always")
def _below(state: Any, bound: int) -> int:
    """Draw a whole number below ``bound`` (SplitMix64); ``state`` is an array of one uint64."""
    state[0] += _GOLDEN
    mixed = state[0]
    mixed = (mixed ^ (mixed >> _30)) * _MIX_1
    mixed = (mixed ^ (mixed >> _27)) * _MIX_2
    mixed ^= mixed >> _31
    drawn: int = np.int64(((mixed >> _32) * np.uint64(bound)) >> _32)  # type: ignore[assignment]
    return drawn


@njit(cache=True)
def _shuffle(order: Any, seed: Any) -> None:
    for last in range(len(order) - 1, 0, -1):
        other = _below(seed, last + 1)
        order[last], order[other] = order[other], order[last]


@njit(cache=True)
def _holds(items: Any, start: int, stop: int, item: int) -> bool:
    """Return whether the ascending ``items[start:stop]`` contain ``item``."""
    end = stop
    while start < stop:
        middle = (start + stop) >> 1
        if items[middle] < item:
            start = middle + 1
        else:
            stop = middle
    return start < end and items[start] == item


@njit(cache=True, fastmath=True)
def biased_factors(
    users: Any,
    items: Any,
    values: Any,
    mean: float,
    user_bias: Any,
    item_bias: Any,
    user_factors: Any,
    item_factors: Any,
    rate: float,
    regularization: float,
    epochs: int,
    seed: Any,
) -> None:
    """Minimise the squared error by gradient descent, one rating at a time, in a new random order each epoch."""
    count, factors = len(values), user_factors.shape[1]
    order = np.arange(count)
    step, shrink = np.float32(rate), np.float32(regularization)
    for _ in range(epochs):
        _shuffle(order, seed)
        for place in order:
            u, i = users[place], items[place]
            p, q = user_factors[u], item_factors[i]
            predicted = np.float32(mean) + user_bias[u] + item_bias[i]
            for f in range(factors):
                predicted += p[f] * q[f]
            error = np.float32(values[place]) - predicted
            user_bias[u] += step * (error - shrink * user_bias[u])
            item_bias[i] += step * (error - shrink * item_bias[i])
            for f in range(factors):
                old = p[f]
                p[f] += step * (error * q[f] - shrink * old)
                q[f] += step * (error * old - shrink * q[f])


@njit(cache=True, fastmath=True, error_model="numpy")
def pointwise_epoch(
    indptr: Any,
    users: Any,
    items: Any,
    biases: Any,
    user_bias: Any,
    item_bias: Any,
    user_factors: Any,
    item_factors: Any,
    negatives: int,
    outside: bool,
    rate: float,
    regularization: float,
    seed: Any,
) -> float:
    """Minimise the logistic loss of each rating (1) and ``negatives`` drawn items (0), from all or outside the profile.

    ``biases`` holds the global bias. Return an estimate of the summed loss.
    """
    count, factors, n_items = len(items), user_factors.shape[1], len(item_factors)
    order = np.arange(count)
    step, shrink = np.float32(rate), np.float32(regularization)
    total = 0.0
    _shuffle(order, seed)
    for place in order:
        u = users[place]
        start, stop = indptr[u], indptr[u + 1]
        p = user_factors[u]
        for sample in range(1 if outside and stop - start == n_items else negatives + 1):
            i = items[place]
            label = np.float32(1)
            if sample > 0:
                label = np.float32(0)
                i = _below(seed, n_items)
                while outside and _holds(items, start, stop, i):
                    i = _below(seed, n_items)
            q = item_factors[i]
            score = biases[0] + user_bias[u] + item_bias[i]
            for f in range(factors):
                score += p[f] * q[f]
            small = np.exp(-np.abs(score))  # cannot overflow
            if sample < 2:
                # Logarithms are slow, so the loss of the negatives is estimated from the first one.
                loss = np.log(np.float32(1) + small) + max(score, np.float32(0)) - label * score
                total += loss if sample == 0 else negatives * loss
            gap = label - (np.float32(1) if score > 0 else small) / (np.float32(1) + small)
            biases[0] += step * (gap - shrink * biases[0])
            user_bias[u] += step * (gap - shrink * user_bias[u])
            item_bias[i] += step * (gap - shrink * item_bias[i])
            for f in range(factors):
                old = p[f]
                p[f] += step * (gap * q[f] - shrink * old)
                q[f] += step * (gap * old - shrink * q[f])
    return total


@njit(cache=True, nogil=True)
def draw_triples(
    users: Any, indptr: Any, items: Any, raters: Any, by_user: bool, n_items: int, seed: Any, triples: Any
) -> None:
    """Fill the columns of ``triples`` with a user, an item of the profile, and one outside it (−1 if there is none)."""
    for k in range(triples.shape[1]):
        if by_user:
            u = raters[_below(seed, len(raters))]
            i = items[indptr[u] + _below(seed, indptr[u + 1] - indptr[u])]
        else:
            place = _below(seed, len(items))
            u, i = users[place], items[place]
        start, stop = indptr[u], indptr[u + 1]
        j = -1
        if stop - start < n_items:
            j = _below(seed, n_items)
            while _holds(items, start, stop, j):
                j = _below(seed, n_items)
        triples[0, k], triples[1, k], triples[2, k] = u, i, j


@njit(cache=True, nogil=True, fastmath=True, error_model="numpy")
def ascend_triples(
    triples: Any,
    user_factors: Any,
    item_factors: Any,
    item_bias: Any,
    rate: float,
    regularizations: Any,
    first: int,
    samples: int,
) -> None:
    """Maximise BPR's criterion, one triple at a time; the triples start at number ``first`` of ``samples``.

    The step falls linearly from ``rate`` to 0, so that sampling noise fades towards the end. ``regularizations`` are
    those of the user, the positive item, the negative item and the bias.
    """
    factors = user_factors.shape[1]
    on_user, on_positive, on_negative, on_bias = regularizations
    for k in range(triples.shape[1]):
        step = np.float32(rate * (1.0 - (first + k) / samples))
        u, i, j = triples[0, k], triples[1, k], triples[2, k]
        if j < 0:
            continue
        p, q, o = user_factors[u], item_factors[i], item_factors[j]
        margin = item_bias[i] - item_bias[j]
        for f in range(factors):
            margin += p[f] * (q[f] - o[f])
        pull = step / (np.float32(1) + np.exp(margin))
        for f in range(factors):
            own, positive, negative = p[f], q[f], o[f]
            p[f] += pull * (positive - negative) - step * on_user * own
            q[f] += pull * own - step * on_positive * positive
            o[f] -= pull * own + step * on_negative * negative
        item_bias[i] += pull - step * on_bias * item_bias[i]
        item_bias[j] -= pull + step * on_bias * item_bias[j]


@njit(cache=True, nogil=True, fastmath=True)
def weighted_least_squares(
    first: int,
    last: int,
    solved: Any,
    fixed: Any,
    gram: Any,
    indptr: Any,
    columns: Any,
    extra: Any,
    pull: Any,
    steps: int,
) -> None:
    """Move each row x of ``solved`` towards (YᵀY + λI + Σ (c − 1) y yᵀ) x = Σ c t y by conjugate gradients.

    ``gram`` is YᵀY + λI, ``extra`` c − 1 and ``pull`` c t at the stored places.
    """
    factors = solved.shape[1]
    for u in range(first, last):
        x = solved[u]
        start, stop = indptr[u], indptr[u + 1]
        if start == stop:
            x[:] = 0
            continue
        residual = np.zeros(factors, dtype=solved.dtype)
        for f in range(factors):
            applied = np.float32(0)
            for g in range(factors):
                applied += gram[f, g] * x[g]
            residual[f] = -applied
        for place in range(start, stop):
            y = fixed[columns[place]]
            inner = np.float32(0)
            for f in range(factors):
                inner += y[f] * x[f]
            weight = pull[place] - extra[place] * inner
            for f in range(factors):
                residual[f] += weight * y[f]
        direction = residual.copy()
        image = np.empty(factors, dtype=solved.dtype)
        size = np.float32(0)
        for f in range(factors):
            size += residual[f] * residual[f]
        for _ in range(steps):
            if size < np.float32(1e-20):
                break
            for f in range(factors):
                applied = np.float32(0)
                for g in range(factors):
                    applied += gram[f, g] * direction[g]
                image[f] = applied
            for place in range(start, stop):
                y = fixed[columns[place]]
                inner = np.float32(0)
                for f in range(factors):
                    inner += y[f] * direction[f]
                weight = extra[place] * inner
                for f in range(factors):
                    image[f] += weight * y[f]
            curvature = np.float32(0)
            for f in range(factors):
                curvature += direction[f] * image[f]
            length = size / curvature
            new_size = np.float32(0)
            for f in range(factors):
                x[f] += length * direction[f]
                residual[f] -= length * image[f]
                new_size += residual[f] * residual[f]
            for f in range(factors):
                direction[f] = residual[f] + new_size / size * direction[f]
            size = new_size


@njit(cache=True, nogil=True, fastmath=True)
def _descend(gram: Any, target: Any, own: int, settings: Any, w: Any) -> None:
    """Minimise ½ wᵀGw − wᵀg + l2/2 |w|² + l1 |w|₁ over w ≥ 0, w_own = 0, one coordinate at a time."""
    l1, l2, sweeps, tolerance = settings
    count = len(w)
    image = np.zeros(count)
    for _ in range(sweeps):
        largest = 0.0
        for k in range(count):
            curvature = gram[k, k]
            if k == own or curvature <= 0.0:
                continue
            best = (target[k] - image[k] + curvature * w[k] - l1) / (curvature + l2)
            change = max(best, 0.0) - w[k]
            if change != 0.0:
                w[k] += change
                for other in range(count):
                    image[other] += change * gram[other, k]
                largest = max(largest, abs(change))
        if largest < tolerance:
            break


@njit(cache=True, nogil=True)
def _length(near: Any) -> int:
    """Return the number of items before the first −1."""
    count = 0
    while count < len(near) and near[count] >= 0:
        count += 1
    return count


@njit(cache=True, nogil=True)
def slim_whole(first: int, last: int, gram: Any, start: int, settings: Any, weights: Any) -> None:
    """Fill ``weights[row]`` with column ``start + row`` of W, over all items; ``settings`` as for `_descend`."""
    for row in range(first, last):
        _descend(gram, gram[start + row], start + row, settings, weights[row])


@njit(cache=True, nogil=True)
def slim_near(first: int, last: int, gram: Any, near: Any, settings: Any, weights: Any) -> None:
    """Fill ``weights[j]`` with column j of W over the items ``near[j]`` (−1 for none), for first ≤ j < last."""
    for j in range(first, last):
        count = _length(near[j])
        places = near[j, :count]
        part = np.empty((count, count))
        target = np.empty(count)
        for a in range(count):
            target[a] = gram[j, places[a]]
            for b in range(count):
                part[a, b] = gram[places[a], places[b]]
        _descend(part, target, -1, settings, weights[j, :count])


@njit(cache=True, nogil=True)
def slim_sparse(
    first: int, last: int, indptr: Any, raters: Any, values: Any, n_users: int, near: Any, settings: Any, weights: Any
) -> None:
    """Do what `slim_near` does for a catalogue whose Gram matrix does not fit: compute parts of it when needed."""
    for j in range(first, last):
        count = _length(near[j])
        places = np.empty(count + 1, dtype=np.int64)
        # A slice would take longer to compile than everything else here.
        for a in range(count):
            places[a] = near[j, a]
        places[count] = j
        # Group the ratings of these items by user; each pair of a user's ratings adds a product to the Gram matrix.
        ends = np.zeros(n_users + 1, dtype=np.int64)
        for place in places:
            for entry in range(indptr[place], indptr[place + 1]):
                ends[raters[entry] + 1] += 1
        for u in range(n_users):
            ends[u + 1] += ends[u]
        which = np.empty(ends[n_users], dtype=np.int64)
        what = np.empty(ends[n_users])
        begins = ends[:-1].copy()
        for a in range(count + 1):
            for entry in range(indptr[places[a]], indptr[places[a] + 1]):
                spot = begins[raters[entry]]
                which[spot], what[spot] = a, values[entry]
                begins[raters[entry]] += 1
        part = np.zeros((count + 1, count + 1))
        for u in range(n_users):
            for entry in range(ends[u], ends[u + 1]):
                for other in range(ends[u], ends[u + 1]):
                    part[which[entry], which[other]] += what[entry] * what[other]
        _descend(part[:count, :count], part[count, :count], -1, settings, weights[j, :count])


@njit(cache=True, nogil=True, fastmath=True)
def explain_users(
    first: int, last: int, indptr: Any, items: Any, counts: Any, theta: Any, phi: Any, weights: Any, gained: Any
) -> None:
    """Write count / Σ_z θ_uz φ_iz to ``weights``, and Σ_i weight θ_uz φ_iz to ``gained``."""
    topics = theta.shape[1]
    for u in range(first, last):
        sums = np.zeros(topics, dtype=theta.dtype)
        for place in range(indptr[u], indptr[u + 1]):
            row = phi[items[place]]
            likelihood = np.float32(0)
            for z in range(topics):
                likelihood += theta[u, z] * row[z]
            weight = counts[place] / max(likelihood, np.float32(1e-30))
            weights[place] = weight
            for z in range(topics):
                sums[z] += weight * row[z]
        for z in range(topics):
            gained[u, z] = theta[u, z] * sums[z]


@njit(cache=True, nogil=True, fastmath=True)
def explain_items(
    first: int, last: int, indptr: Any, users: Any, places: Any, weights: Any, theta: Any, phi: Any, gained: Any
) -> None:
    """Write Σ_u weight θ_uz φ_iz to ``gained``; ``places`` maps an item's entries to ``weights``."""
    topics = phi.shape[1]
    for i in range(first, last):
        sums = np.zeros(topics, dtype=phi.dtype)
        for entry in range(indptr[i], indptr[i + 1]):
            weight, row = weights[places[entry]], theta[users[entry]]
            for z in range(topics):
                sums[z] += weight * row[z]
        for z in range(topics):
            gained[i, z] = phi[i, z] * sums[z]


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
