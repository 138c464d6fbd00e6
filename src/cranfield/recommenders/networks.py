"""Neural systems: trained in batches by JAX and Optax, scored by NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import MissingExtraError
from cranfield._streams import stream
from cranfield.recommenders.epochs import Epoch, EpochModel, Numbers
from cranfield.recommenders.model import PairModel

Weights = Mapping[str, Any]
"""The weights of a network by name: NumPy arrays, or JAX arrays during training."""

Loss = Callable[[Weights, tuple[Any, ...], Any, Any], Any]
"""Returns the loss of each example of a batch, given the weights, the batch's columns, a random key and constants."""

EXAMPLES = 1 << 18
"""Approximate number of examples drawn at a time, so that memory does not grow with the number of ratings."""


class NetworkModel(EpochModel, PairModel):
    """A system that is trained by gradient descent (Adam) on batches of examples.

    Training uses one thread, so that the same seed gives the same lists for any number of threads. Results may differ
    on another platform, or on a graphics card, which JAX uses if there is one. Scores are computed by NumPy, so that a
    saved model does not need JAX.
    """

    one_thread: ClassVar[bool] = True

    batch: int
    rate: float

    def _machinery(self) -> str:
        jax, optax = libraries(self.name)
        threads = ", on 1 thread" if jax.default_backend() == "cpu" else ""
        return f"jax {jax.__version__} and optax {optax.__version__} on {jax.default_backend()}{threads}"

    def _trained(
        self,
        weights: dict[str, NDArray[np.float32]],
        loss: Loss,
        examples: Callable[[int], Iterator[tuple[Any, ...]]],
        fixed: Any = None,
    ) -> tuple[Numbers, Epoch]:
        """Return the initial numbers, and a function that runs one epoch.

        ``examples`` yields the examples of an epoch in parts, as columns. ``fixed`` are arrays that the loss reads and
        training does not change.
        """
        steps, numbers, unpacked = _compiled(self.name, weights, loss, self.rate, self.batch)

        def epoch(before: Numbers, number: int) -> tuple[Numbers, float]:
            state, total, count = unpacked(before), 0.0, 0
            for part, columns in enumerate(examples(number)):
                seed = np.uint32(stream(self.seed, self.name, "key", number, part).integers(2**32))
                state, summed = steps(state, seed, columns, fixed)
                total, count = total + summed, count + len(columns[0])
            return {name: np.asarray(values) for name, values in numbers(state).items()}, total / max(count, 1)

        return numbers(unpacked(None)), epoch

    def _take(self, numbers: Numbers) -> None:
        # The other numbers belong to Adam.
        self._weights = {name.removeprefix("w."): values for name, values in numbers.items() if name.startswith("w.")}


def libraries(system: str) -> tuple[Any, Any]:
    """Return JAX and Optax, or say what to install."""
    try:
        import jax
        import optax
    except ImportError as error:
        raise MissingExtraError(system, library="jax and optax", extra="neural") from error
    return jax, optax


def _compiled(
    system: str, weights: dict[str, NDArray[np.float32]], loss: Loss, rate: float, batch: int
) -> tuple[Callable[..., Any], Callable[[Any], dict[str, Any]], Callable[[Numbers | None], Any]]:
    """Return the training steps, and functions that convert the weights and Adam's state to named arrays and back."""
    jax, optax = libraries(system)
    adam = optax.adam(rate)
    fresh = (weights, adam.init(weights))
    structure = jax.tree.structure(fresh)
    names = [f"w.{name}" for name in sorted(weights)]
    names += [f"adam.{place}" for place in range(structure.num_leaves - len(names))]

    def run(state: Any, key: Any, count: Any, columns: Any, fixed: Any) -> Any:
        def mean(w: Any, rows: Any, valid: Any, key: Any) -> Any:
            return (loss(w, rows, key, fixed) * valid).sum() / valid.sum()

        def step(number: Any, carry: Any) -> Any:
            (w, moments), total = carry
            rows = tuple(jax.lax.dynamic_slice_in_dim(column, number * batch, batch) for column in columns)
            valid = jax.numpy.arange(batch) + number * batch < count
            value, gradient = jax.value_and_grad(mean)(w, rows, valid, jax.random.fold_in(key, number))
            updates, moments = adam.update(gradient, moments, w)
            return (optax.apply_updates(w, updates), moments), total + value * valid.sum()

        # The number of steps is not static, so that full parts and the last part share one compiled loop.
        return jax.lax.fori_loop(0, (count + batch - 1) // batch, step, (state, 0.0))

    on_one_thread = {"xla_cpu_multi_thread_eigen": False} if jax.default_backend() == "cpu" else None
    compiled = jax.jit(run, compiler_options=on_one_thread)

    def steps(state: Any, seed: np.uint32, columns: tuple[NDArray[Any], ...], fixed: Any) -> tuple[Any, float]:
        count = len(columns[0])
        if not count:
            return state, 0.0
        # Pad to few different lengths, since each is compiled separately.
        room = batch * (1 << (-(-count // batch) - 1).bit_length())
        padded = tuple(np.concatenate([column, np.repeat(column[:1], room - count, axis=0)]) for column in columns)
        state, total = compiled(state, jax.random.key(seed), count, padded, fixed)
        return state, float(total)

    def numbers(state: Any) -> dict[str, Any]:
        return dict(zip(names, jax.tree.leaves(state), strict=True))

    def unpacked(by_name: Numbers | None) -> Any:
        return fresh if by_name is None else jax.tree.unflatten(structure, [by_name[name] for name in names])

    return steps, numbers, unpacked


def dense(draw: np.random.Generator, wide: int, narrow: int) -> NDArray[np.float32]:
    """Return the initial weights of a layer followed by rectifiers (He et al. 2015)."""
    return (draw.standard_normal((wide, narrow)) * np.sqrt(2 / wide)).astype(np.float32)


def rectified(values: Any) -> Any:
    """Return the positive part, for arrays of NumPy and of JAX."""
    return values * (values > 0)
