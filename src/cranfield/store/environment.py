"""The machine that an experiment runs on, and the versions of everything that affects numbers."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

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


@cache
def machine() -> str:
    """Return the processor, its threads, the memory and the operating system, as far as they are known."""
    known = [_from_table("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()]
    known.append(f"{os.cpu_count() or 1} threads")
    with suppress(AttributeError, OSError, ValueError):
        memory = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
        known.append(f"{memory / 2**30:.0f} GiB of memory")
    return ", ".join([*known, f"{platform.system()} {platform.release()}"])


def _from_table(path: str, key: str) -> str | None:
    """Return a value from one of the kernel's tables; None if the table does not exist."""
    try:
        lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key), None)
