"""The whole process: its settings (threads, progress, the command line's seed), and the memory that it may use."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cranfield._starting import memory_limit

# Where the kernel reports a container's memory limit and usage (control groups, version 2).
_GROUP = Path("/sys/fs/cgroup")


@dataclass
class Settings:
    """Process-wide settings; the command line sets them from its options of the same names.

    Examples
    --------
    >>> Settings(quiet=True).quiet
    True
    """

    threads: int | None = None  # number of threads; by default one per core
    quiet: bool = False  # whether to hide progress
    details: bool = False  # whether results are printed with every table and remark
    seed: int = 0  # the seed of the command line
    # The most bytes that a compressed file may unpack to. By default 100 times its own size, and at least 64 MiB; the
    # archives of known datasets have their own limits.
    unpack_limit: int | None = None
    # Maximum width of a printed table in letters. By default the width of the terminal, or 100 if there is none.
    width: float | None = None

    @property
    def workers(self) -> int:
        """The number of threads to use: the number set, or every core this process may run on."""
        if self.threads is not None:
            return self.threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


settings = Settings()


def available_memory() -> float:
    """Return the memory free for this process in bytes; infinite if unknown.

    It is the smallest of what the machine, the container and the shell (``ulimit``) allow.
    """
    free = [_of_machine()]
    group, used = (_number(_GROUP / name) for name in ("memory.max", "memory.current"))
    if group is not None and used is not None:
        free.append(max(group - used, 0.0))
    if (allowed := memory_limit()) is not None:
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
