"""Families: datasets of one site, or with the same users, which are not independent."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cranfield._errors import SettingError, nearest

_KNOWN = {
    "MovieLens": r"(ml|movielens)[-_ ]?(100k|1m|10m|20m|25m|32m|latest.*)?",
    "Amazon": r"(amazon|amz)\b.*",
    "Last.fm": r".*last\.?fm.*",
    "Book-Crossing": r"(book-?crossing|bx).*",
    "LibraryThing": r"librarything.*",
    "Yelp": r"yelp.*",
    "Yahoo": r"yahoo.*",
    "Steam": r"steam.*",
    "CM100k": r"cm100k.*",
}


def known_families(datasets: Mapping[str, str]) -> dict[str, str]:
    """Return the known source of each dataset, from the name that it is known by, where that says so.

    Examples
    --------
    >>> known_families({"mine": "ml-1m", "books": "amazon-books", "other": "other"})
    {'mine': 'MovieLens', 'books': 'Amazon'}
    """
    sources = {}
    for name, known_as in datasets.items():
        lowered = known_as.lower().replace("_", "-")
        if family := next((family for family, pattern in _KNOWN.items() if re.fullmatch(pattern, lowered)), None):
            sources[name] = family
    return sources


def check_families(families: Mapping[str, str] | None, datasets: Sequence[str]) -> dict[str, str]:
    """Return the family of each dataset that has one; refuse datasets that are not there."""
    given = dict(families or {})
    for name, family in given.items():
        if name not in datasets:
            raise SettingError(f"families: there is no dataset {name!r}{nearest(str(name), datasets)}")
        if not isinstance(family, str) or not family:
            raise SettingError(f"families: the family of {name!r} is {family!r}; give it a name")
    return given


def members(families: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the datasets of each family that has several."""
    grouped: dict[str, list[str]] = {}
    for name, family in families.items():
        grouped.setdefault(family, []).append(name)
    return {family: tuple(names) for family, names in grouped.items() if len(names) > 1}
