"""What several metrics share is made once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def once(kept: dict[Any, Any], key: Any, make: Callable[[], T]) -> T:
    """Return what ``make`` makes, made at the first call and kept under ``key``."""
    if key not in kept:
        kept[key] = make()
    value: T = kept[key]
    return value
