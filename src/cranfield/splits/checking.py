"""Checking a split, whatever tool made it: counts, and facts that say what they mean and whether something is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import polars as pl

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._files import meant
from cranfield._numbers import percent_text
from cranfield._result import Figures, Result
from cranfield._settings import settings
from cranfield._table import MOST_REMARKS, Table, remark_lines
from cranfield._terminal import shown
from cranfield.data import Ratings, over_one_vocabulary, read
from cranfield.facts import Fact
from cranfield.facts import split as facts
from cranfield.splits.files import part_file, recorded_steps, split_folders
from cranfield.splits.part_counts import columns_of, part_counts
from cranfield.splits.parts import repeats_in
from cranfield.splits.split import Split
from cranfield.tables import day

Promise = Literal["any", "user", "global"]
PROMISES: tuple[Promise, ...] = ("any", "user", "global")
"""What a split promises about time: nothing; that no user's test ratings precede the user's own training ratings; or
that no test rating precedes any training rating."""

# The probability that a split by chance has one of the three shifts that need attention.
_CHANCE = 0.05
_PARTS = ("train", "profiles", "validation", "test")
_GLOBAL = ("temporal", "rolling")
# Not cold_users, whose warm users have random test ratings, nor cold_items: an item's last ratings are not a user's.
_BY_USER = ("per_user", "leave_out", "strong_generalisation")


@dataclass(frozen=True, eq=False)
class SplitCheck(Result):
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

    Examples
    --------
    >>> import cranfield as cf
    >>> split = cf.splits.random(cf.Ratings.of([1] * 4, list("abcd")), exact=True, train=0.5)
    >>> check_split(split, name="mine").verdict[0]
    'mine: nothing wrong, 2 things to note.'
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

    def facts(self) -> list[Fact]:
        """Return how much is wrong or needs attention, then the findings with the most serious first."""
        attention = sum(finding.level == "attention" for finding in self.findings)
        return [facts.SplitVerdict(self.name, len(self.wrong), attention), *self.findings]

    def frame(self) -> pl.DataFrame:
        """Return the findings, one per row, with columns split, about, level and sentence."""
        rows = [(self.name, finding.about, finding.level, finding.sentence) for finding in self.findings]
        return pl.DataFrame(rows, schema=["split", "about", "level", "sentence"], orient="row")

    def table(self) -> Table:
        """Return the counts as a table for people."""
        return side_by_side([self])

    @property
    def figures(self) -> Figures:
        """How the parts differ in ``ratings``, ``profiles``, ``time`` and ``gaps`` (the last two with times alone)."""
        from cranfield.splits import figures

        return figures.figures_of(self)

    def as_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        about = {"split": self.name, "promise": self.promise, "wrong": bool(self.wrong)}
        return {**about, "findings": self.frame().drop("split").to_dicts(), **self.counts}

    def __str__(self) -> str:
        findings = [finding for finding in self.findings if settings.details or finding.level != "fine"]
        return "\n".join([self.verdict[0], *remark_lines(findings, MOST_REMARKS)])

    def __repr__(self) -> str:
        return f"SplitCheck({self.name!r}, {len(self.wrong)} wrong of {len(self.findings)} findings)"


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
    step = None
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
        if reading.get("repeated", "auto") == "auto" and step is not None and "repeated" in step.settings:
            reading["repeated"] = step.settings["repeated"]
        given = {part: source for part, source in sources.items() if source is not None}
        read_in = {
            part: source if isinstance(source, Ratings) else read_part(source, **reading)
            for part, source in given.items()
        }
        empty = next((part for part, ratings in read_in.items() if len(ratings) == 0), None)
        if empty is not None:
            raise InputError(f"the {empty} part has no ratings", remedy="give the right file")
        parts = dict(zip(read_in, over_one_vocabulary(list(read_in.values()))))
    if isinstance(train, Split):
        are_events = "repeated" in train.step.settings
    else:
        are_events = reading.get("repeated", "auto") not in ("auto", "error") or all(map(_is_log, parts.values()))
    are_events &= all(part.times is not None for part in parts.values())
    events = repeats_in(parts) if are_events else None
    if events is not None and step is not None and set(step.effect.get("events", ())) == set(parts):
        events = replace(events, events=step.effect["events"])  # a file of a test part holds ratings
    repeated = {} if are_events else {part: _repeated_rows(ratings) for part, ratings in parts.items()}
    name = name or next((parts[part].name for part in ("test", "train") if parts[part].name), None) or "the split"
    counts = part_counts(parts, repeated, events)
    method = None if step is None else str(step.action).removeprefix("split.")
    promised = promise or _promise(method, {} if step is None else step.settings, parts)
    findings = _findings(counts, promised, cold_users=method == "cold_users")
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


def read_part(source: Any, **reading: Any) -> Ratings:
    """Read a part of a split; of repeated ratings that nobody has said how to merge, the last one is used."""
    rule = reading.get("repeated", "auto")
    part = read(source, **{**reading, "repeated": "last" if rule in ("auto", "error") else rule})
    is_ratings = rule in ("auto", "error") and "rating" in columns_of(part) and "basket" not in columns_of(part)
    return replace(part, events=None) if is_ratings else part


def _repeated_rows(part: Ratings) -> int:
    """Return how many rows repeated a pair when a part was read, if that is known."""
    last = part.history[-1] if part.history else None
    return int(last.effect["rows"]) - len(part) if last is not None and last.action == "read" else 0


def _is_log(part: Ratings) -> bool:
    """Whether a part is of events: it has some, or it was read from rows with times and no rating."""
    columns = columns_of(part)
    return part.events is not None or ("time" in columns and "rating" not in columns)


def _promise(method: str | None, settings: Mapping[str, Any], parts: Mapping[str, Ratings]) -> Promise:
    if method is None:
        return "user" if all(part.times is not None for part in parts.values()) else "any"
    in_baskets = method != "sessions" and settings.get("unit") in ("basket", "session")
    if in_baskets and parts["test"].events is None:
        return "any"  # a basket is at the time of its last event, and these have lost their baskets
    if method in _GLOBAL:
        return "global"
    by_user = method in _BY_USER and settings.get("which") == "last"
    return "user" if by_user or method == "sessions" else "any"


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
    rows.append(("in two parts", f"{sum(counts['overlap'].values()):,}"))
    rows.append(("repeated pairs", f"{sum(counts['repeated'].values()):,}"))
    early = {"own": "test before own training", "before_training_ends": "test before training ends"}
    for key, label in {**early, "items_seen_later": "items seen later"}.items():
        rows.append((label, none if leakage is None else percent_text(leakage[key] / test["rows"])))
    rows.append(("users without training", f"{cold['users']:,}"))
    rows.append(("items without training", f"{cold['items']:,}"))
    rows += [(f"shift of {name}, D", f"{shift['D']:.3f}") for name, shift in counts["shift"].items()]
    dated = not counts["numbered"]
    days = facts.days_text(gaps["days"]["median"]) if gaps is not None and dated else none
    rows.append(("median gap in days", days))
    rows.append(("median test profile", f"{test['profiles']['median']:,.0f}"))
    rows.append(("oldest test rating", shown(day(test["oldest"])) if test["oldest"] is not None and dated else none))
    return rows


def _findings(counts: Mapping[str, Any], promise: Promise, *, cold_users: bool = False) -> list[facts.SplitFinding]:
    """Return the findings, the most serious first; ``cold_users`` if the split is about users without training."""
    order = ("wrong", "attention", "fine")
    findings = [
        *_on_pairs(counts),
        *_on_time(counts, promise),
        *_on_ratings(counts, cold_users),
        *_on_questions(counts),
    ]
    return sorted(findings, key=lambda finding: order.index(finding.level))


def _on_pairs(counts: Mapping[str, Any]) -> Iterator[facts.SplitFinding]:
    thing = "(user, item) pair" if counts["repeats"] is None else "event"
    if not any(counts["overlap"].values()):
        yield facts.PairsInParts("fine", thing=thing)
    for names, pairs in counts["overlap"].items():
        if pairs:
            smaller = min(counts["parts"][name]["ratings"] for name in names.split(" and "))
            yield facts.PairsInParts("wrong", pairs, names, smaller, thing)
    if counts["repeats"] is not None:
        repeats = Fact.read(counts["repeats"])
        yield facts.RepeatedItems("attention" if repeats.repeated else "fine", repeats)
    for part, rows in counts["repeated"].items():
        if rows:
            yield facts.PairsRepeated("wrong", part, rows)


def _on_time(counts: Mapping[str, Any], promise: Promise) -> Iterator[facts.SplitFinding]:
    """Yield leakage in time: of the test part, then of the validation part."""
    by_user: facts.FindingLevel = "attention" if promise == "any" else "wrong"
    globally: facts.FindingLevel = "wrong" if promise == "global" else "attention"
    parts, leakage, inner = counts["parts"], counts["leakage"], counts["validation_leakage"]
    if leakage is None:
        yield facts.WithoutTimes(by_user)
        return
    if counts["numbered"]:
        older, users = leakage["own"], leakage["own_users"]
        level = by_user if older else "fine"
        yield facts.OlderRatings(level, "test", older, parts["test"]["rows"], "own training", users)
        return
    train, test, begins = parts["train"]["rows"], parts["test"]["rows"], day(parts["test"]["oldest"])
    if leakage["own"]:
        yield facts.OlderRatings(by_user, "test", leakage["own"], test, "own training", leakage["own_users"])
    older, newer = leakage["before_training_ends"], (leakage["training_after_test_begins"], train)
    level = globally if older else "fine"
    yield facts.OlderRatings(level, "test", older, test, "training", newer=newer, begins=begins)
    if later := leakage["items_seen_later"]:
        yield facts.OlderRatings(globally, "test", later, test, "item in training", leakage["items_seen_later_items"])
    if inner is None:
        return
    validation = parts["validation"]["rows"]
    if inner["own"]:
        yield facts.OlderRatings(by_user, "validation", inner["own"], validation, "own training", inner["own_users"])
    # Only a split along the global timeline promises the other two.
    if promise == "global" and (older := inner["before_training_ends"]):
        yield facts.OlderRatings("wrong", "validation", older, validation, "training")
    if promise == "global" and (older := inner["test_before_it_ends"]):
        yield facts.OlderRatings("wrong", "test", older, test, "validation")


def _on_ratings(counts: Mapping[str, Any], cold_users: bool) -> Iterator[facts.SplitFinding]:
    cold, test, gaps = counts["cold"], counts["parts"]["test"], counts["gaps"]
    level: facts.FindingLevel = "attention" if cold["ratings"] else "fine"
    if cold["users"] == test["users"] and not cold_users:
        level = "wrong"
    yield facts.ColdStart(level, **cold, of=test["ratings"], of_users=test["users"], of_items=test["items"])
    for name, shift in counts["shift"].items():
        finding = facts.PartShift("fine", name, **shift)
        by_chance = shift["p"] > _CHANCE / len(counts["shift"])
        yield finding if by_chance or shift["D"] < finding.enough else replace(finding, level="attention")
    if gaps is not None and not counts["numbered"]:
        yield facts.DaysToTest("fine", **gaps)
    for name, part in counts["parts"].items():
        sizes = {key: part[key] for key in ("ratings", "users", "items", "profiles")}
        yield facts.PartSize("fine", name, **sizes)


def _on_questions(counts: Mapping[str, Any]) -> Iterator[facts.SplitFinding]:
    """Yield what the split can and cannot show."""
    parts, leakage, cold = counts["parts"], counts["leakage"], counts["cold"]
    test = parts["test"]
    known = test["users"] - cold["users"]
    # Each question with whether it is answered, and the number of users or items that it names.
    questions: dict[str, tuple[bool, int]] = {}
    if leakage is not None and not counts["numbered"]:
        questions["past"] = (not leakage["before_training_ends"], 0)
    if "profiles" in parts:
        questions["profiles"] = (True, 0)
    else:
        questions |= {"known users": (known > 0, known), "new users": (cold["users"] > 0, cold["users"])}
    questions["new items"] = (cold["items"] > 0, cold["items"])
    questions["order"] = (test["profiles"]["median"] > 1, 0)
    questions["tuning"] = ("validation" in parts, 0)
    for answered in (True, False):
        some = {name: number for name, (is_answered, number) in questions.items() if is_answered == answered}
        if some:
            yield facts.QuestionsAnswered("fine", answered, some)
