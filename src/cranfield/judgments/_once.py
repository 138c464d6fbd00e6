"""Caching of values that several metrics share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def once(kept: dict[Any, Any], key: Any, make: Callable[[], T]) -> T:
    """Return the result of ``make``, which is called once and cached under ``key``."""
    if key not in kept:
        kept[key] = make()
    value: T = kept[key]
    return value
