"""File names of runs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cranfield._errors import SettingError
from cranfield._registry import parse


def file_name(systems: Iterable[str]) -> dict[str, str]:
    """Return a file stem for each spelled system, by the name of its run.

    The stem is the name without spaces. Characters that are special in file systems or shells become underscores.

    Examples
    --------
    >>> file_name(["popularity", "knn( k=50, overlap=5 )"])
    {'popularity': 'popularity', 'knn(k=50, overlap=5)': 'knn(k=50,overlap=5)'}
    """
    stems: dict[str, str] = {}
    for system in systems:
        name = str(parse(system))
        stem = re.sub(r"[^\w.()=,+-]", "_", name.replace(" ", ""))
        if stem in stems.values():
            raise SettingError(f"two systems would be written to the file {stem!r}; give each system once")
        stems[name] = stem
    return stems
