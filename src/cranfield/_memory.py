"""Memory: how much there is, how much this process uses, and sizes as text."""

from __future__ import annotations

import os
import re
from pathlib import Path

from cranfield._errors import SettingError
from cranfield._watching import limit

_SIZES = {"": 1, "b": 1} | {
    letters: base**power
    for power, prefix in enumerate("kmgt", start=1)
    for letters, base in ((f"{prefix}b", 1000), (f"{prefix}ib", 1024))
}
_GIB, _MIB = 1 << 30, 1 << 20
# Where the kernel reports a container's memory limit and usage (control groups, version 2).
_GROUP = Path("/sys/fs/cgroup")


def size(text: str | int) -> int:
    """Return the number of bytes of a size such as ``"2 GiB"``.

    Examples
    --------
    >>> size("500MB"), size("2 GiB"), size(4096)
    (500000000, 2147483648, 4096)
    """
    form = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([a-z]*)", str(text).lower(), re.ASCII)
    if form is None or form[2] not in _SIZES or float(form[1]) == 0:
        raise SettingError(f"{text!r} is not a size; write bytes, or a size such as 500MB or 4GiB")
    return round(float(form[1]) * _SIZES[form[2]])


def size_text(bytes: float) -> str:
    """Return a number of bytes as readable text.

    Examples
    --------
    >>> size_text(3 * 2**30), size_text(700 * 2**20)
    ('3.0 GiB', '700 MiB')
    """
    return f"{bytes / _GIB:,.1f} GiB" if bytes >= _GIB else f"{bytes / _MIB:,.0f} MiB"


def available_memory() -> float:
    """Return the memory free for this process in bytes; infinite if unknown.

    It is the smallest of what the machine, the container and the shell (``ulimit``) allow.
    """
    free = [_of_machine()]
    group, used = (_number(_GROUP / name) for name in ("memory.max", "memory.current"))
    if group is not None and used is not None:
        free.append(max(group - used, 0.0))
    if (allowed := limit()) is not None:
        free.append(float(allowed))
    return min(free)


def _of_machine() -> float:
    table = Path("/proc/meminfo")
    if table.exists():
        for line in table.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return float(line.split()[1]) * 1024
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _number(path: Path) -> float | None:
    """Return the number in a kernel file; None if it holds none, as when there is no limit."""
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return None


def resident_memory() -> float:
    """Return how many bytes of memory this process uses; 0 if unknown."""
    try:
        return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError, IndexError):
        return 0.0
