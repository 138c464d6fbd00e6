"""The versions of everything that affects numbers."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from cranfield._version import __version__

_LIBRARIES = ("numpy", "scipy", "polars", "numba", "optuna")


def versions(libraries: Iterable[str] = _LIBRARIES) -> dict[str, str]:
    """Return the versions of this package, of Python, and of the libraries that are installed."""
    numbers = {"cranfield": __version__, "Python": platform.python_version()}
    return numbers | {name: known for name in libraries if (known := _installed(name)) is not None}


# Cached: every artifact records the versions, and looking them up takes longer than making a small artifact.
@cache
def _installed(library: str) -> str | None:
    """Return the version of a library; None if it is not installed."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None
