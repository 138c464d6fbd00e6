"""The versions of what numbers come from."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from cranfield._version import __version__

_LIBRARIES = ("numpy", "scipy", "polars", "numba", "optuna")


def versions(libraries: Iterable[str] = _LIBRARIES) -> dict[str, str]:
    """Return the versions of what the numbers come from: this package, Python, and those libraries that are there."""
    numbers = {"cranfield": __version__, "Python": platform.python_version()}
    return numbers | {name: known for name in libraries if (known := _installed(name)) is not None}


# Every artifact states the versions, and reading them takes longer than making a small one.
@cache
def _installed(library: str) -> str | None:
    """Return the version of a library, None if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None
