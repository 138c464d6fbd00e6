"""Checking a split, whatever tool made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._files import meant
from cranfield._numbers import percent_text
from cranfield._table import Table
from cranfield._terminal import shown
from cranfield.data import Ratings, over_one_vocabulary, read
from cranfield.facts import sentences
from cranfield.facts import split as facts
from cranfield.splits.check_findings import PROMISES, Promise, findings_of
from cranfield.splits.files import part_file, recorded_steps, split_folders
from cranfield.splits.parts import before_own_training, cold_counts, in_both, moments
from cranfield.splits.split import Split
from cranfield.tables import day

_PARTS = ("train", "profiles", "validation", "test")
_QUANTILES = {"min": 0.0, "q1": 0.25, "median": 0.5, "q3": 0.75, "max": 1.0}
_DAY = 86_400
_GLOBAL = ("temporal", "rolling")
# Not cold_users, whose warm users have random test ratings, nor cold_items: an item's last ratings are not a user's.
_BY_USER = ("per_user", "leave_out", "strong_generalisation")


@dataclass(frozen=True, eq=False)
class SplitCheck:
    """The result of checking a split; made by `check_split`.

    Parameters
    ----------
    name
        The name of the split.
    parts
        ``train`` and ``test``, and possibly ``profiles`` and ``validation``, over one vocabulary.
    promise
        What the split promises about time: ``any`` (nothing), ``user`` or ``global``.
    counts
        All counts.
    findings
        What they mean, as facts, the most serious first.
    """

    name: str
    parts: Mapping[str, Ratings]
    promise: Promise
    counts: Mapping[str, Any]
    findings: tuple[facts.SplitFinding, ...]

    @property
    def wrong(self) -> tuple[str, ...]:
        """The sentences about what is wrong; empty if nothing is."""
        return tuple(finding.sentence for finding in self.findings if finding.level == "wrong")

    def sentences(self) -> list[str]:
        """Return the verdict, then the findings with the most serious first."""
        attention = sum(finding.level == "attention" for finding in self.findings)
        return sentences([facts.SplitVerdict(self.name, len(self.wrong), attention), *self.findings])

    def frame(self) -> pl.DataFrame:
        """Return the findings, one per row, with columns split, about, level and sentence."""
        rows = [(self.name, finding.about, finding.level, finding.sentence) for finding in self.findings]
        return pl.DataFrame(rows, schema=["split", "about", "level", "sentence"], orient="row")

    def table(self) -> Table:
        """Return the counts as a table for people."""
        return side_by_side([self])

    def as_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        about = {"split": self.name, "promise": self.promise, "wrong": bool(self.wrong)}
        return {**about, "findings": self.frame().drop("split").to_dicts(), **self.counts}

    def __str__(self) -> str:
        return "\n".join(self.sentences()) + "\n\n" + self.table().text()

    def __repr__(self) -> str:
        return f"SplitCheck({self.name!r}, {len(self.wrong)} wrong of {len(self.findings)} findings)"

    def _repr_html_(self) -> str:
        return self.table().html()


def check_split(
    train: Split | Ratings | Any,
    test: Ratings | Any = None,
    validation: Ratings | Any = None,
    *,
    promise: Promise | None = None,
    name: str | None = None,
    **reading: Any,
) -> SplitCheck:
    """Check a split, whatever tool made it.

    The check covers overlap between the parts and repeated pairs within them; leakage in time, per user and globally,
    and items first seen later; users and items without training ratings; shifts of ratings, popularity and activity
    from training to test, with their sizes; the time from a user's last training rating to the first test rating; and
    the sizes of the profiles. It says what the split can and cannot show.

    Parameters
    ----------
    train
        A `Split`; a folder made by `write` or ``cranfield split`` (one fold of it, if there are folds); or the training
        ratings: `Ratings`, a file, or a frame.
    test, validation
        The other parts, if ``train`` is the training part.
    promise
        What the split promises about time: nothing (``"any"``), that no test rating is older than a training rating of
        the same user (``"user"``), or of any user (``"global"``). Anything that breaks the promise is wrong; other
        leakage is reported as worth noting. By default the record of the split decides; without a record it is
        ``"user"``, or ``"any"`` if the parts have no times.
    name
        The name of the split.
    reading
        Options for reading files and frames; see `cranfield.read`. Repeated pairs are counted; the last one is used.

    Examples
    --------
    >>> train = Ratings.of(["ann", "ann", "bob"], ["x", "y", "x"], times=[1, 5, 2])
    >>> test = Ratings.of(["ann", "bob"], ["z", "x"], times=[3, 4])
    >>> for sentence in check_split(train, test).wrong:
    ...     print(sentence)
    1 (user, item) pair is in both train and test (50.0% of the smaller part).
    1 test rating (50.0%) of 1 user is older than a training rating of the same user.
    """
    if promise is not None:
        check.one_of("promise", promise, PROMISES)
    step, repeated = None, dict[str, int]()
    if isinstance(train, Split):
        if test is not None or validation is not None:
            raise SettingError("a split has its own parts; leave test and validation out")
        name, parts, step = name or repr(train), dict(train.parts), train.step
    else:
        sources = {"train": train, "validation": validation, "test": test}
        if isinstance(train, str | Path) and (folder := meant(train)).is_dir() and test is None:
            sources, name, step = _part_files(folder), name or folder.name, (recorded_steps(folder) or (None,))[-1]
        elif test is None:
            raise SettingError(
                "check_split needs a test part; give the training and the test ratings, a split or a folder"
            )
        parts, repeated = _read_parts({part: source for part, source in sources.items() if source is not None}, reading)
    name = name or next((parts[part].name for part in ("test", "train") if parts[part].name), None) or "the split"
    counts = _counts(parts, repeated)
    method = None if step is None else str(step.action).removeprefix("split.")
    promised = promise or _promise(method, {} if step is None else step.settings, parts)
    findings = findings_of(counts, promised, cold_users=method == "cold_users")
    return SplitCheck(name, parts, promised, counts, tuple(findings))


def side_by_side(checks: Sequence[SplitCheck]) -> Table:
    """Return the counts of several splits as one table, one column per split."""
    counted = [_counted(check) for check in checks]
    rows = [[same_row[0][0], *(text for _, text in same_row)] for same_row in zip(*counted)]
    return Table(["", *(check.name for check in checks)], rows)


def _part_files(folder: Path) -> dict[str, Any]:
    files = {part: file for part in _PARTS if (file := part_file(folder, part)) is not None}
    absent = [part for part in ("train", "test") if part not in files]
    if absent:
        folds = [path.name for path in split_folders(folder) if path != folder]
        remedy = f"give one of its folds, such as {folds[0]}" if folds else "give another folder, or the files"
        raise InputError(f"it has no file {' and no file '.join(absent)}", source=str(folder), remedy=remedy)
    return files


def _read_parts(sources: Mapping[str, Any], reading: Mapping[str, Any]) -> tuple[dict[str, Ratings], dict[str, int]]:
    """Return the parts over one vocabulary, and how many rows of each repeated a pair when it was read, if known."""
    parts, repeated = {}, {}
    for name, source in sources.items():
        part = source if isinstance(source, Ratings) else read(source, **{**reading, "repeated": "last"})
        if len(part) == 0:
            raise InputError(f"the {name} part has no ratings", remedy="give the right file")
        last = part.history[-1] if part.history else None
        repeated[name] = last.effect["rows"] - len(part) if last is not None and last.action == "read" else 0
        parts[name] = part
    return dict(zip(parts, over_one_vocabulary(list(parts.values())))), repeated


def _promise(method: str | None, settings: Mapping[str, Any], parts: Mapping[str, Ratings]) -> Promise:
    if method is None:
        return "user" if all(part.times is not None for part in parts.values()) else "any"
    if method in _GLOBAL:
        return "global"
    return "user" if method in _BY_USER and settings.get("which") == "last" else "any"


def _counted(check: SplitCheck) -> list[tuple[str, str]]:
    """Return the counts of the table, each with its label."""
    counts, none = check.counts, "–"
    parts, leakage, cold, gaps = counts["parts"], counts["leakage"], counts["cold"], counts["gaps"]
    test = parts["test"]
    rows = [
        (f"{name}: {what}", f"{parts[name][what]:,}" if name in parts else none)
        for name in ("train", "validation", "test")
        for what in ("ratings", "users", "items")
    ]
    rows.append(("pairs in two parts", f"{sum(counts['overlap'].values()):,}"))
    rows.append(("repeated pairs", f"{sum(counts['repeated'].values()):,}"))
    early = {"own": "test before own training", "before_training_ends": "test before training ends"}
    for key, label in {**early, "items_seen_later": "items seen later"}.items():
        rows.append((label, none if leakage is None else percent_text(leakage[key] / test["ratings"])))
    rows.append(("users without training", f"{cold['users']:,}"))
    rows.append(("items without training", f"{cold['items']:,}"))
    rows += [(f"shift of {name}, D", f"{shift['D']:.3f}") for name, shift in counts["shift"].items()]
    rows.append(("median gap in days", none if gaps is None else facts.days_text(gaps["days"]["median"])))
    rows.append(("median test profile", f"{test['profiles']['median']:,.0f}"))
    rows.append(("oldest test rating", none if test["oldest"] is None else shown(day(test["oldest"]))))
    return rows


def _counts(parts: Mapping[str, Ratings], repeated: Mapping[str, int]) -> dict[str, Any]:
    """Return all counts, ready for JSON; ``repeated`` are the rows of each part that repeated a pair of that part."""
    train, test, validation = parts["train"], parts["test"], parts.get("validation")
    inputs = parts.get("profiles", train)
    inner = None if validation is None else _leakage(train, validation, inputs)
    if inner is not None and validation is not None and validation.times is not None and test.times is not None:
        inner["test_before_it_ends"] = int(np.count_nonzero(test.times < validation.times.max()))
    days, gaps = gap_days(inputs, test), None
    if days is not None and len(days):
        gaps = {"users": len(days), "negative": int(np.count_nonzero(days < 0)), "days": _quantiles(days)}
    return {
        "parts": {name: _part(part) for name, part in parts.items()},
        "repeated": {name: int(repeated.get(name, 0)) for name in parts},
        "overlap": {
            f"{a} and {b}": int(np.count_nonzero(in_both(*sorted((parts[a], parts[b]), key=len))))
            for a, b in combinations(parts, 2)
        },
        "cold": cold_counts(train, test, inputs),
        "leakage": _leakage(train, test, inputs),
        "validation_leakage": inner if test.times is not None else None,
        "gaps": gaps,
        "shift": _shifts(train, test, inputs),
    }


def _quantiles(values: NDArray[Any]) -> dict[str, float]:
    return dict(zip(_QUANTILES, map(float, np.quantile(values, list(_QUANTILES.values())))))


def _part(part: Ratings) -> dict[str, Any]:
    sizes = part.user_counts[part.user_counts > 0]
    return {
        "ratings": len(part),
        "users": len(sizes),
        "items": int(np.count_nonzero(part.item_counts)),
        "mean": float(part.values.mean()),
        "profiles": _quantiles(sizes),
        "oldest": None if part.times is None else int(part.times.min()),
        "newest": None if part.times is None else int(part.times.max()),
    }


def _leakage(train: Ratings, test: Ratings, inputs: Ratings) -> dict[str, Any] | None:
    """Count how many test ratings are older than training ratings; None without times."""
    if train.times is None or test.times is None or inputs.times is None:
        return None
    own = before_own_training(test, inputs)
    first_test = int(test.times.min())
    first_seen = np.full(train.n_items, np.iinfo(np.int64).max)
    np.minimum.at(first_seen, train.items, train.times)
    later = (test.times < first_seen[test.items]) & (train.item_counts[test.items] > 0)
    return {
        "own": int(np.count_nonzero(own)),
        "own_users": int(np.count_nonzero(np.bincount(test.users[own], minlength=test.n_users))),
        "before_training_ends": int(np.count_nonzero(test.times < int(train.times.max()))),
        "training_after_test_begins": int(np.count_nonzero(train.times > first_test)),
        "items_seen_later": int(np.count_nonzero(later)),
        "items_seen_later_items": len(np.unique(test.items[later])),
    }


def gap_days(inputs: Ratings, test: Ratings) -> NDArray[np.float64] | None:
    """Return the days from each user's last known rating to the first test rating; None without times."""
    if inputs.times is None or test.times is None:
        return None
    both = (inputs.user_counts > 0) & (test.user_counts > 0)
    days: NDArray[np.float64] = (moments(test, np.minimum)[both] - moments(inputs, np.maximum)[both]) / _DAY
    return days


def _shifts(train: Ratings, test: Ratings, inputs: Ratings) -> dict[str, Any]:
    """Return how far ratings, popularity of items and activity of users differ between training and test.

    Popularity and activity are the numbers of training ratings of a rating's item and user; for a user who is held out
    whole, of the input. Whether a training rating counts itself makes a difference of one, which is not a shift: of the
    two ways to count, the one with the smaller distance is used.
    """
    own, others = np.repeat(train.user_counts, train.user_counts), np.repeat(inputs.user_counts, test.user_counts)
    popular = (train.item_counts[train.items], train.item_counts[test.items])
    counted = {"popularity": popular, "activity": (own, others)}
    return {"ratings": shift(train.values, test.values)} | {
        name: min((shift(before - itself, after) for itself in (0, 1)), key=lambda way: way["D"])
        for name, (before, after) in counted.items()
    }


def shift(before: NDArray[Any], after: NDArray[Any]) -> dict[str, float]:
    """Return the means of two samples, the standardised difference, and Kolmogorov's distance with its p-value.

    d is the difference of the means in standard deviations of the first sample. D is the largest difference between the
    two distribution functions, from 0 (the same) to 1 (nothing in common).
    """
    from scipy.special import kolmogorov

    before, after = np.sort(before.astype(np.float64)), np.sort(after.astype(np.float64))
    values = np.union1d(before, after)
    below = [np.searchsorted(sample, values, side="right") / len(sample) for sample in (before, after)]
    distance = float(np.abs(below[0] - below[1]).max())
    spread = float(before.std())
    size = len(before) * len(after) / (len(before) + len(after))
    return {
        "train": float(before.mean()),
        "test": float(after.mean()),
        "d": float((after.mean() - before.mean()) / spread) if spread > 0 else 0.0,
        "D": distance,
        "p": float(kolmogorov(np.sqrt(size) * distance)),
    }
