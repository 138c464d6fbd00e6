"""Checking a split, whatever tool made it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._files import meant
from cranfield._numbers import count_text, percent_text
from cranfield._record import Step
from cranfield._table import Table
from cranfield._terminal import shown
from cranfield.data import Ratings, over_one_vocabulary, read
from cranfield.splits.check_facts import facts_of
from cranfield.splits.check_findings import PROMISES, Promise, SplitFinding, decimals_text, findings_of
from cranfield.splits.files import RECORD
from cranfield.splits.split import Split
from cranfield.tables import FORMATS, day

_PARTS = ("train", "profiles", "validation", "test")
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
    facts
        All counts.
    findings
        What they mean, the most serious first.
    """

    name: str
    parts: Mapping[str, Ratings]
    promise: Promise
    facts: Mapping[str, Any]
    findings: tuple[SplitFinding, ...]

    @property
    def wrong(self) -> tuple[str, ...]:
        """The sentences about what is wrong; empty if nothing is."""
        return tuple(finding.sentence for finding in self.findings if finding.level == "wrong")

    def sentences(self) -> list[str]:
        """Return the verdict, then the findings with the most serious first."""
        wrong, attention = (
            sum(finding.level == level for finding in self.findings) for level in ("wrong", "attention")
        )
        verdict = f"{count_text(wrong, 'thing')} wrong" if wrong else "nothing wrong"
        first = f"{self.name}: {verdict}, {count_text(attention, 'thing')} to note."
        return [first, *(finding.sentence for finding in self.findings)]

    def frame(self) -> pl.DataFrame:
        """Return the findings, one per row, with columns split, about, level and sentence."""
        rows = [(self.name, finding.name, finding.level, finding.sentence) for finding in self.findings]
        return pl.DataFrame(rows, schema=["split", "about", "level", "sentence"], orient="row")

    def table(self) -> Table:
        """Return the counts as a table for people."""
        return side_by_side([self])

    def as_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        findings = [
            {"about": finding.name, "level": finding.level, "sentence": finding.sentence} for finding in self.findings
        ]
        return {
            "split": self.name,
            "promise": self.promise,
            "wrong": bool(self.wrong),
            "findings": findings,
            **self.facts,
        }

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
    if isinstance(train, Split):
        _refuse_further(test, validation, "a split")
        return _examined(name or repr(train), dict(train.parts), {}, promise, train.step)
    if isinstance(train, str | Path) and meant(train).is_dir() and test is None:
        return _of_folder(meant(train), promise, name, reading)
    if test is None:
        raise SettingError("check_split needs a test part; give the training and the test ratings, a split or a folder")
    given = {"train": train, "validation": validation, "test": test}
    return _of_parts({key: part for key, part in given.items() if part is not None}, promise, name, reading)


def split_folders(folder: str | Path) -> list[Path]:
    """Return the folders of the folds of a written split, or the folder itself if there are none."""
    home = meant(folder)
    folds = sorted(home.glob("fold-*"), key=lambda path: (len(path.name), path.name))
    return [path for path in folds if path.is_dir()] or [home]


def side_by_side(checks: Sequence[SplitCheck]) -> Table:
    """Return the counts of several splits as one table, one column per split."""
    rows = [[label, *(_cell(check, place) for check in checks)] for place, label in enumerate(_rows(checks[0]))]
    return Table(["", *(check.name for check in checks)], rows)


def _of_folder(folder: Path, promise: Promise | None, name: str | None, reading: Mapping[str, Any]) -> SplitCheck:
    files = {part: file for part in _PARTS if (file := _file_of(folder, part)) is not None}
    absent = [part for part in ("train", "test") if part not in files]
    if absent:
        folds = [path.name for path in split_folders(folder) if path != folder]
        remedy = f"give one of its folds, such as {folds[0]}" if folds else "give another folder, or the files"
        raise InputError(f"it has no file {' and no file '.join(absent)}", source=str(folder), remedy=remedy)
    steps = recorded_steps(folder)
    return _of_parts(files, promise, name or folder.name, reading, steps[-1] if steps else None)


def _file_of(folder: Path, part: str) -> Path | None:
    """Return the file of a part; other tools may have another name for the validation part."""
    names = ("validation", "valid", "val", "dev") if part == "validation" else (part,)
    endings = (*FORMATS, "txt", "dat", "csv.gz", "tsv.gz")
    files = [file for name in names for ending in endings if (file := folder / f"{name}.{ending}").is_file()]
    if len(files) > 1:
        raise InputError(
            f"{files[0].name} and {files[1].name} are both there, and only one can be the {part} part",
            source=str(folder),
            remedy="give the files themselves",
        )
    return files[0] if files else None


def recorded_steps(folder: Path) -> tuple[Step, ...]:
    """Return how a split in a folder of `write` was made: the steps before it, and its own; empty if unknown."""
    for home in (folder, folder.parent):
        try:
            record = json.loads((home / RECORD).read_text(encoding="utf-8"))
            steps = [*record["data"]["history"], record["splits"][0]["split"]]
            return tuple(Step(step["action"], step["settings"], step["effect"]) for step in steps)
        except (OSError, ValueError, KeyError, IndexError, TypeError):
            continue
    return ()


def _of_parts(
    given: Mapping[str, Any],
    promise: Promise | None,
    name: str | None,
    reading: Mapping[str, Any],
    step: Step | None = None,
) -> SplitCheck:
    parts, repeated = {}, {}
    for part, source in given.items():
        parts[part] = source if isinstance(source, Ratings) else read(source, **{**reading, "repeated": "last"})
        repeated[part] = _merged(parts[part])
        if len(parts[part]) == 0:
            raise InputError(f"the {part} part has no ratings", remedy="give the right file")
    joined = _over_one(parts)
    called = name or next((part.name for part in (joined["test"], joined["train"]) if part.name), None) or "the split"
    return _examined(called, joined, repeated, promise, step)


def _merged(part: Ratings) -> int:
    """Return how many rows repeated a pair when the ratings were read; 0 if unknown."""
    last = part.history[-1] if part.history else None
    return last.effect["rows"] - len(part) if last is not None and last.action == "read" else 0


def _over_one(parts: dict[str, Ratings]) -> dict[str, Ratings]:
    first = next(iter(parts.values()))
    if all(part.user_ids == first.user_ids and part.item_ids == first.item_ids for part in parts.values()):
        return parts
    return dict(zip(parts, over_one_vocabulary(list(parts.values()))))


def _examined(
    name: str, parts: dict[str, Ratings], repeated: Mapping[str, int], promise: Promise | None, step: Step | None
) -> SplitCheck:
    """Check parts; ``step`` is how they were made, if known."""
    facts = facts_of(parts, repeated)
    method = None if step is None else str(step.action).removeprefix("split.")
    promised = promise or _promise(method, {} if step is None else step.settings, parts)
    findings = findings_of(facts, promised, cold_users=method == "cold_users")
    return SplitCheck(name, parts, promised, facts, tuple(findings))


def _promise(method: str | None, settings: Mapping[str, Any], parts: Mapping[str, Ratings]) -> Promise:
    if method is None:
        return "user" if all(part.times is not None for part in parts.values()) else "any"
    if method in _GLOBAL:
        return "global"
    return "user" if method in _BY_USER and settings.get("which") == "last" else "any"


def _refuse_further(test: Any, validation: Any, what: str) -> None:
    if test is not None or validation is not None:
        raise SettingError(f"{what} has its own parts; leave test and validation out")


def _rows(check: SplitCheck) -> list[str]:
    return [label for label, _ in _counted(check)]


def _cell(check: SplitCheck, place: int) -> str:
    return _counted(check)[place][1]


def _counted(check: SplitCheck) -> list[tuple[str, str]]:
    """Return the counts of the table, each with its label."""
    facts, none = check.facts, "–"
    parts, leakage, cold, gaps = facts["parts"], facts["leakage"], facts["cold"], facts["gaps"]
    test = parts["test"]
    rows = [
        (f"{name}: {what}", f"{parts[name][what]:,}" if name in parts else none)
        for name in ("train", "validation", "test")
        for what in ("ratings", "users", "items")
    ]
    rows.append(("pairs in two parts", f"{sum(facts['overlap'].values()):,}"))
    rows.append(("repeated pairs", f"{sum(facts['repeated'].values()):,}"))
    for label, key in (
        ("test before own training", "own"),
        ("test before training ends", "before_training_ends"),
        ("items seen later", "items_seen_later"),
    ):
        rows.append((label, none if leakage is None else percent_text(leakage[key] / test["ratings"])))
    rows.append(("users without training", f"{cold['users']:,}"))
    rows.append(("items without training", f"{cold['items']:,}"))
    rows += [(f"shift of {name}, D", f"{facts['shift'][name]['D']:.3f}") for name in facts["shift"]]
    rows.append(("median gap in days", none if gaps is None else decimals_text(gaps["days"]["median"])))
    rows.append(("median test profile", none if test["profiles"] is None else f"{test['profiles']['median']:,.0f}"))
    rows.append(("oldest test rating", none if test["oldest"] is None else shown(day(test["oldest"]))))
    return rows
