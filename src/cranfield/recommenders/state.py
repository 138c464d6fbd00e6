"""The state of a fitted model as arrays, which can be loaded into another model of the same kind.

Nothing is pickled. A plan in JSON says what each attribute is: an array, a sparse matrix, a plain value, a small
dataclass or dictionary of these, or an array of the training ratings, which is only named, since the ratings are kept
elsewhere.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield.data import Ratings

PLAN = "plan"
"""The entry of a state that describes the others."""

_OF_TRAIN: Mapping[str, Callable[[Ratings], NDArray[Any]]] = {
    "items": lambda train: train.items,
    "values": lambda train: train.values,
    "indptr": lambda train: train.indptr,
    "user_counts": lambda train: train.user_counts,
    "item_counts": lambda train: train.item_counts,
    "ones": lambda train: np.ones(len(train)),
}


class CannotKeepError(SettingError):
    """The state of a model is not only arrays and plain values."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}, which cannot be kept as arrays; give the system save(path) and load(path), or keep its lists"
        )


def pack(attributes: Mapping[str, Any], train: Ratings) -> dict[str, NDArray[Any]]:
    """Return attributes as named arrays, with a plan that describes each."""
    packer = _Packer(train)
    plan = {name: packer.planned(name, value) for name, value in attributes.items()}
    return {PLAN: np.array(json.dumps(plan, sort_keys=True)), **packer.arrays}


def unpack(state: Mapping[str, NDArray[Any]], train: Ratings, owner: type) -> dict[str, Any]:
    """Return the attributes that `pack` packed; ``owner`` is the class that they belong to."""
    try:
        plan = json.loads(str(state[PLAN]))
        unpacker = _Unpacker(state, train, owner)
        return {name: unpacker.value(spec) for name, spec in plan.items()}
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise InputError("this is not the state of a fitted model", remedy="train the system again") from error


class _Packer:
    def __init__(self, train: Ratings) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._train_arrays = {name: array(train) for name, array in _OF_TRAIN.items()}

    def planned(self, name: str, value: Any) -> dict[str, Any]:
        """Store the arrays of a value, and return its plan."""
        if value is None or isinstance(value, bool | int | float | str):
            return {"value": value}
        if isinstance(value, np.ndarray):
            return self._array(name, value)
        if hasattr(value, "indptr") and getattr(value, "format", None) == "csr":
            parts = {part: self._array(f"{name}.{part}", getattr(value, part)) for part in _CSR}
            return {"csr": parts, "shape": [int(size) for size in value.shape]}
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {"mapping": {key: self.planned(f"{name}.{key}", inner) for key, inner in value.items()}}
        if is_dataclass(value):
            inside = {
                field.name: self.planned(f"{name}.{field.name}", getattr(value, field.name)) for field in fields(value)
            }
            return {"object": type(value).__name__, "fields": inside}
        raise CannotKeepError(f"{name} is a {type(value).__name__}")

    def _array(self, name: str, value: NDArray[Any]) -> dict[str, Any]:
        if value.dtype.hasobject:
            raise CannotKeepError(f"{name} holds Python objects")
        for known, array in self._train_arrays.items():
            if value.shape == array.shape and np.array_equal(value, array):
                return {"train": known, "dtype": value.dtype.str}
        self.arrays[name] = value
        return {"array": name}


_CSR = ("data", "indices", "indptr")


class _Unpacker:
    def __init__(self, state: Mapping[str, NDArray[Any]], train: Ratings, owner: type) -> None:
        self._state, self._owner = state, owner
        # Matrices with the sparsity pattern of the ratings share its arrays.
        self._of_train = lru_cache(maxsize=None)(lambda name, dtype: np.asarray(_OF_TRAIN[name](train), dtype=dtype))

    def value(self, spec: Mapping[str, Any]) -> Any:
        """Return the value that a part of the plan describes."""
        if "value" in spec:
            return spec["value"]
        if "train" in spec:
            return self._of_train(spec["train"], spec["dtype"])
        if "array" in spec:
            return self._state[spec["array"]]
        if "csr" in spec:
            return self._matrix(spec)
        if "mapping" in spec:
            return {key: self.value(part) for key, part in spec["mapping"].items()}
        inside = {name: self.value(part) for name, part in spec["fields"].items()}
        return _dataclass_of(self._owner, spec["object"])(**inside)

    def _matrix(self, spec: Mapping[str, Any]) -> Any:
        from scipy import sparse

        parts = tuple(self.value(spec["csr"][part]) for part in _CSR)
        matrix = sparse.csr_array(parts, shape=tuple(spec["shape"]))
        # Compiled loops do not check indices.
        matrix.check_format(full_check=True)
        return matrix


def _dataclass_of(owner: type, name: str) -> Any:
    """Return a dataclass from a module that defines the model or one of its parents; other names are refused."""
    for parent in owner.__mro__:
        candidate = getattr(sys.modules[parent.__module__], name, None)
        if parent is not object and isinstance(candidate, type) and is_dataclass(candidate):
            return candidate
    raise KeyError(name)
