"""The versions of what numbers come from."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version

from cranfield._version import __version__

_LIBRARIES = ("numpy", "scipy", "polars", "numba", "optuna")


def versions(libraries: Iterable[str] = _LIBRARIES) -> dict[str, str]:
    """Return the versions of what the numbers come from: this package, Python, and those libraries that are there."""
    found = {"cranfield": __version__, "Python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
