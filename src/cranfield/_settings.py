"""Settings of a whole process: the number of threads, whether to show progress, and the command line's seed."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass
class Settings:
    """Process-wide settings; the command line sets them from its options of the same names.

    Parameters
    ----------
    threads
        Number of threads; by default one per core.
    quiet
        Whether to hide progress.
    seed
        The seed of the command line.
    unpack_limit
        The most bytes that a compressed file may unpack to. By default 100 times its own size, and at least 64 MiB;
        the archives of known datasets have their own limits.
    width
        Maximum width of a printed table in letters. By default the width of the terminal, or 100 if there is none.
    """

    threads: int | None = None
    quiet: bool = False
    seed: int = 0
    unpack_limit: int | None = None
    width: float | None = None

    @property
    def workers(self) -> int:
        """The number of threads to use: the number set, or every core this process may run on."""
        if self.threads is not None:
            return self.threads
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


settings = Settings()
