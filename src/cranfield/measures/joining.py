"""Joining of scores over one vocabulary of users: of disjoint users, or of folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield._record import Step
from cranfield.facts import Fact
from cranfield.facts import scores as scores_facts
from cranfield.judgments import sum_of_counts
from cranfield.measures.measuring import Services
from cranfield.measures.notes import outside_in_folds
from cranfield.measures.scores import Scores
from cranfield.tables import UNKNOWN, Vocabulary

Floats = NDArray[np.float64]


def join_scores(parts: Sequence[Scores]) -> Scores:
    """Return the scores of disjoint users as one, as if they had been measured together.

    The parts must have the same systems and metrics in the same order. Properties of all lists together cannot be
    computed from parts: metrics of the whole system are refused, and the share of the catalogue that is recommended is
    left out. Metrics that depend on the highest rating of the test set (``ERR``, ``gain=exp1``), and bounds, are the
    same as when measured together only if every part contains that rating.
    """
    check_alike(parts, "part")
    first = parts[0]
    whole = [m for part in parts if part.overall is not None for m in np.flatnonzero(~np.isnan(part.overall).all(0))]
    if whole:
        raise SettingError(
            f"{first.metrics[whole[0]]} belongs to all lists together and cannot be combined from parts; leave it "
            "out, or measure all lists at once"
        )
    if len(parts) == 1:
        return first
    lists = lists_of(parts)
    owner = np.repeat(np.arange(len(parts)), [part.n_lists for part in parts])
    users = lists["users"]
    if (users[1:] < users[:-1]).any():
        order = np.argsort(users, kind="stable")
        owner = owner[order]
        lists |= {name: values[..., order] for name, values in lists.items() if isinstance(values, np.ndarray)}
    check_owners(lists["user_ids"], lists["users"], owner)
    names = dict.fromkeys(name for part in parts for name in part.counts)
    return replace(
        first,
        **lists,
        **_services(parts),
        overall=first.overall,
        item_coverage=None,
        nonexistent=None,
        counts={name: sum_of_counts([part.counts.get(name, {}) for part in parts]) for name in names},
        notes=tuple({str(note): note for part in parts for note in part.notes}.values()),
        warnings=tuple({str(note): note for part in parts for note in part.warnings}.values()),
        step=replace(first.step, settings={**first.step.settings, "test": None, "parts": len(parts)}),
    )


def check_owners(ids: Vocabulary, users: NDArray[Any], owners: NDArray[Any]) -> None:
    """Refuse users whose lists, which are sorted by user, are in several parts."""
    again = np.flatnonzero((users[1:] == users[:-1]) & (owners[1:] != owners[:-1]))
    if len(again):
        twice = ids.ids(users[again[:1]])[0]
        raise InputError(f"user {twice} is in more than one part", remedy="give every user's lists in one part")


def check_alike(parts: Sequence[Scores], what: str) -> None:
    """Refuse parts that do not have the same systems and metrics."""
    if not parts:
        raise InputError(f"there are no {what}s", remedy="give the scores of one or more")
    first = parts[0]
    for place, part in enumerate(parts[1:], start=2):
        for kind in ("systems", "metrics"):
            if getattr(part, kind) != getattr(first, kind):
                raise InputError(
                    f"{what} {place} has other {kind} ({', '.join(getattr(part, kind))}) than {what} 1 "
                    f"({', '.join(getattr(first, kind))})",
                    remedy=f"measure every {what} with the same systems and metrics",
                )


def lists_of(parts: Sequence[Scores]) -> dict[str, Any]:
    """Return the fields of `Scores` with one value per list, concatenated over the parts; users are matched by id."""
    (groups, names), (ids, users) = _groups(parts), users_of(parts)
    lists: dict[str, Any] = {"users": users, "user_ids": ids, "groups": groups, "group_names": names}
    for name in ("values", "covered", "judged", "relevant", "bounds", "repetitions", "trained"):
        known = [getattr(part, name) for part in parts if getattr(part, name) is not None]
        lists[name] = np.concatenate(known, axis=-1) if len(known) == len(parts) else None
    return lists


def users_of(parts: Sequence[Scores]) -> tuple[Vocabulary, NDArray[np.int32]]:
    """Return the users of all parts, and the user of each list."""
    ids = Vocabulary.union([part.user_ids for part in parts])
    codes = [ids.translation(part.user_ids) for part in parts]
    return ids, np.concatenate([part.users if own is None else own[part.users] for own, part in zip(codes, parts)])


def _groups(parts: Sequence[Scores]) -> tuple[NDArray[np.int16] | None, tuple[str, ...]]:
    """Return the group of each list over the names of all parts; None if any part has none."""
    if any(part.groups is None for part in parts):
        return None, ()
    names = max((part.group_names for part in parts), key=len)
    if any(part.group_names != names[: len(part.group_names)] for part in parts):
        names = tuple(dict.fromkeys(name for part in parts for name in part.group_names))
    place = [np.array([*(names.index(name) for name in part.group_names), UNKNOWN]) for part in parts]
    codes = [code_of_name[part.groups] for code_of_name, part in zip(place, parts)]  # -1 selects the last cell
    return np.concatenate(codes).astype(np.int16), names


def _services(parts: Sequence[Scores]) -> dict[str, Any]:
    """Return Coverage@d and the shares of unjudged and of relevant items over all parts, from counts of items."""
    if any(part.recommended is None or part.unjudged is None or part.liked is None for part in parts):
        return {"recommended": None, "filled": None, "unjudged": None, "liked": None, "longest": 0}
    return reduce(add, map(Services.of_scores, parts)).fields


def join_folds(folds: Sequence[Scores], repetitions: Sequence[int] | None = None) -> Scores:
    """Return the scores of all folds as one, in which a user has the lists of all folds.

    Properties of a whole system, such as catalogue coverage, are averaged over the folds. The folds must have the same
    systems and metrics in the same order. Their users may differ, and are matched by id. ``repetitions`` is the
    repetition of each fold, counted from 0; with several repetitions, it is kept for each list.
    """
    check_alike(folds, "fold")
    first = folds[0]
    if len(folds) == 1:
        return first
    outside = outside_in_folds([fold.outside_catalogue for fold in folds])
    of_catalogue = [of_system for of_system in outside if of_system.entries]
    return replace(
        first,
        **{**lists_of(folds), "repetitions": repetition_of_lists(folds, repetitions)},
        step=replace(first.step, settings={**first.step.settings, "folds": len(folds)}),
        counts={},
        outside_catalogue=outside,
        notes=(*_joined_notes([fold.notes for fold in folds], repetitions), *of_catalogue),
        warnings=(*_joined_notes([fold.warnings for fold in folds], repetitions), *of_catalogue),
        overall=_averaged([fold.overall for fold in folds]),
        filled=_averaged([fold.filled for fold in folds]),
        unjudged=_averaged([fold.unjudged for fold in folds]),
        liked=_averaged([fold.liked for fold in folds]),
        nonexistent=_averaged([fold.nonexistent for fold in folds]),
        item_coverage=_averaged([fold.item_coverage for fold in folds]),
        recommended=None,
    )


def by_session(scores: Scores, step: Step) -> Scores:
    """Return scores in which all beginnings of a session are lists of the session, if the split has a list for each.

    Averages are then over sessions of the average over their beginnings, and tests pair sessions.
    """
    if step.action != "split.sessions" or step.settings["given"] != "each":
        return scores
    # The beginning with k events is the user ``session@k``.
    ids, users = Vocabulary.encode(scores.user_ids.text.gather(scores.users).str.replace(r"@\d+$", ""))
    return replace(scores, user_ids=ids, users=users)


def repetition_of_lists(folds: Sequence[Scores], repetitions: Sequence[int] | None) -> NDArray[np.int16] | None:
    """Return the repetition of each list; None if there is only one."""
    if repetitions is None or len(set(repetitions)) < 2:
        return None
    return np.repeat(np.array(repetitions, dtype=np.int16), [fold.n_lists for fold in folds])


def _joined_notes(folds: Sequence[Sequence[Fact]], repetitions: Sequence[int] | None) -> list[Fact]:
    """Return the notes of all folds, without those on the catalogue, which are about all folds together."""
    of_folds = [[note for note in fold if not isinstance(note, scores_facts.OutsideCatalogue)] for fold in folds]
    return scores_facts.InFold.joined(of_folds, repetitions)


def _averaged(tables: Sequence[Floats | None]) -> Floats | None:
    """Return the mean of the folds that have a value; None if a fold has no table."""
    known = [table for table in tables if table is not None]
    if len(known) < len(tables):
        return None
    counted = ~np.isnan(known)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(counted, known, 0.0).sum(axis=0) / counted.sum(axis=0)
    return mean
