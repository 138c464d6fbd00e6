"""A JSON schema of the experiment file, for editors that complete and check TOML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cranfield.experiments.decisions import DECISIONS, takes
from cranfield.experiments.experiment import ASSESSING, AUDITING, LIST_READING, NOTES
from cranfield.experiments.source import FEATURES, KINDS, READING

_TEXT: dict[str, Any] = {"type": "string"}
_LIST: dict[str, Any] = {"type": "array", "items": _TEXT}
_CALLED = {str: "string", int: "integer", bool: "boolean", dict: "object"}


def schema() -> dict[str, Any]:
    """Return the schema of an experiment file, draft 2020-12.

    Examples
    --------
    >>> schema()["properties"]["decisions"]["properties"]["lists"]["enum"]
    ['full', 'condensed']
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An experiment of cranfield",
        **_table(
            {
                "title": {**_TEXT, "description": "the heading of the report"},
                "seed": {"type": "integer", "minimum": 0, "default": 0},
                "repetitions": {"type": "integer", "minimum": 1, "default": 1},
                "decisions": _table({name: _decision(name) for name in DECISIONS}),
                "data": {"type": "object", "minProperties": 1, "additionalProperties": _source()},
                "systems": _systems(),
                "notes": _table(dict.fromkeys(NOTES, _TEXT)),
                "labels": {"type": "object", "additionalProperties": _TEXT},
                "assess": _table({name: {} for name in ASSESSING}),
                "audit": _table({name: {} for name in AUDITING}),
            }
        ),
    }


def _table(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _decision(name: str) -> dict[str, Any]:
    """Return the schema of a decision: its choices, or the types of values that its check accepts."""
    decision = DECISIONS[name]
    default = list(decision.default) if isinstance(decision.default, tuple) else decision.default
    about = {"description": f"{decision.metadata['letter']}: {decision.metadata['says']}", "default": default}
    if decision.metadata["choices"]:
        return {"enum": list(decision.metadata["choices"]), **about}
    kinds = list(_kinds(name, default))
    return {**kinds[0], **about} if len(kinds) == 1 else {"anyOf": kinds, **about}


def _kinds(name: str, default: Any) -> Iterator[dict[str, Any]]:
    if isinstance(default, list):
        yield from (_LIST, _TEXT)
    elif isinstance(default, bool):
        yield {"type": "boolean"}
    elif takes(name, 7):
        yield from ({"const": word} for word in ("all", "auto") if takes(name, word))
        shares = isinstance(default, float) or takes(name, 0.5)
        least = {} if takes(name, -1) else {"minimum": 0} if takes(name, 0) else {"minimum": 1}
        kind = "number" if shares else "integer"
        yield {"type": kind, "exclusiveMinimum": 0} if shares and least else {"type": kind, **least}
    elif takes(name, 0.5):
        yield {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    else:
        yield _TEXT


def _source() -> dict[str, Any]:
    where = (*KINDS, "test", *FEATURES, "family")
    reading = {name: {"type": [_CALLED[kind] for kind in kinds]} for name, kinds in READING.items()}
    source_table = _table({**dict.fromkeys(where, _TEXT), **reading})
    return {**source_table, "oneOf": [{"required": [key]} for key in KINDS]}


def _systems() -> dict[str, Any]:
    reading = {key: {"enum": [*values]} for key, values in LIST_READING.items()}
    run = {**_table({"run": _TEXT, **reading}), "required": ["run"]}
    number: dict[str, Any] = {"type": "number"}
    between = {**_table({"low": number, "high": number, "log": {"type": "boolean"}}), "required": ["low", "high"]}
    values = {"anyOf": [{"type": "array", "minItems": 1}, between]}
    space = {"type": "object", "minProperties": 1, "additionalProperties": values}
    whole = {"type": "integer", "minimum": 1}
    trained = {
        **_table({"system": _TEXT, "search": space, "metric": _TEXT, "trials": whole}),
        "required": ["system"],
        "dependentRequired": {"metric": ["search"], "trials": ["search"]},
    }
    named = {"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": [_TEXT, run, trained]}}
    return {"anyOf": [{**_LIST, "minItems": 1}, named]}
