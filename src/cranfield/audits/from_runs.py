"""Audits of given ranked lists, without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cranfield._checks import flag
from cranfield._errors import SettingError
from cranfield._registry import parse
from cranfield.audits.enumeration import enumerate_universes
from cranfield.audits.measured_lists import SetupLists
from cranfield.audits.options import GIVEN, check_baseline, preset_options
from cranfield.audits.parsing import AuditSettings, audit_settings
from cranfield.audits.result import Audit
from cranfield.audits.truth import given_truth
from cranfield.audits.universes import AVERAGED, MEASURED, UserPlaces, audit_universes, deepest
from cranfield.data import AUTO, Ratings
from cranfield.experiments import Decisions, Experiment, Source, System
from cranfield.facts import comparison as comparison_facts
from cranfield.judgments import Context, as_judged, as_test, check_inputs
from cranfield.rankings import Gaps

OPENED_ON_LISTS = ("lists", *MEASURED, *AVERAGED)
"""The decisions that can be opened on given lists."""

PRESET = "measuring"
"""The default preset; ``lists`` is opened as well, so that condensed lists are included."""


def audit_runs(
    runs: Any,
    test: Any,
    *,
    train: Ratings | None = None,
    metric: str = "P@10",
    threshold: float | str | None = AUTO,
    preset: str | None = None,
    vary: Mapping[str, Any] | None = None,
    kinds: Mapping[str, str] | None = None,
    budget: int | None = None,
    truth: Mapping[str, float] | str | None = None,
    gaps: Gaps = "keep",
    seed: int = 0,
    strict: bool = False,
) -> Audit:
    """Audit given ranked lists; the options are those of `cranfield.audits.audit`.

    Only decisions that need no training can be opened: which items count (``lists``), metrics, cut-offs, thresholds,
    averages, coverage. Condensed lists are left out, with the reason, if the given lists are too short for them: each
    list was cut somewhere, and the rated items below the cut are not known. Cut-offs that the lists do not reach are
    left out of a preset.
    """
    test = as_test(test)
    judged = as_judged(runs, test, threshold, Context(train), gaps=gaps)
    warnings = [
        comparison_facts.Warned(warning) for warning in check_inputs(judged, test, strict=flag("strict", strict))
    ]
    longest = max(lists.depth for lists in judged)
    table = _table(longest, metric, preset, vary, kinds, budget)
    level = judged[0].judgments.threshold
    decisions = Decisions(split="predefined", length="all", metrics=metric, threshold=level)
    experiment = Experiment(
        data=(Source("given", train="train", test="test"),),
        systems=tuple(System(f"system {number}", run=GIVEN) for number in range(len(judged))),
        decisions=decisions,
        seed=seed,
        audit=table,
    )
    settings = audit_settings(experiment)
    names = SetupLists([judged], []).systems
    known = given_truth(truth, names)
    _check_shown(settings, longest, names)
    enumeration = enumerate_universes(settings)

    def lists_of(number: int, places: UserPlaces) -> SetupLists:
        judgments = judged[0].judgments
        lists = SetupLists([judged], [places.of("given", judgments.user_ids.ids(judgments.users))])
        condensed = enumeration.setups[number].experiment.decisions.lists == "condensed"
        return lists.with_given([True] * len(judged), condensed=condensed)

    return audit_universes(enumeration, names, lists_of, known, warnings)


def _table(
    longest: int,
    metric: str,
    preset: str | None,
    vary: Mapping[str, Any] | None,
    kinds: Mapping[str, str] | None,
    budget: int | None,
) -> dict[str, Any]:
    """Return the table ``[audit]``; options of a preset that need training, or longer lists, are left out."""
    options: dict[str, Any] = {}
    if preset is not None or not vary:
        if parse(metric).cutoff is None:
            raise SettingError(
                f"{metric} has no cut-off, and an audit of given lists opens it; start from one such as P@10"
            )
        options = {"lists": ("full", "condensed"), **preset_options(preset or PRESET)}
        options = {name: list(values) for name, values in options.items() if name in OPENED_ON_LISTS}
        start = parse(metric).cutoff
        options["cutoff"] = [cutoff for cutoff in options["cutoff"] if cutoff <= longest]
        if {*options["cutoff"], start} == {start}:  # every metric then has the cut-off of the starting point
            options |= {"cutoff": None, "metrics": [f"{name}@{start}" for name in options["metrics"]]}
    opened = {name: values for name, values in {**options, **(vary or {})}.items() if values is not None}
    table: dict[str, Any] = {"vary": opened, "kinds": dict(kinds or {})}
    return table if budget is None else {**table, "budget": budget}


def _check_shown(settings: AuditSettings, longest: int, systems: Sequence[str]) -> None:
    """Raise an error for decisions that given lists cannot show."""
    for average in next((decision.values for decision in settings.varied if decision.name == "average"), ()):
        check_baseline(average, systems)
    for name in settings.names:
        if name not in OPENED_ON_LISTS:
            raise SettingError(
                f"audit: {name} cannot be opened on given lists, because it needs systems that are trained here; "
                "leave it out, or audit an experiment file"
            )
    if (deep := max(deepest(settings), default=0)) > longest:
        raise SettingError(
            f"audit: the longest list has {longest} items, so a cut-off of {deep} cannot be shown; give longer lists, "
            f"or cut-offs of at most {longest}"
        )
