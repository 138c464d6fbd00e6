"""The page about audits says what can be opened."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from cranfield.audits.options import PRESETS, VARIABLE_DECISIONS
from cranfield.audits.parsing import audit_settings
from cranfield.experiments import Experiment
from cranfield.experiments.experiment import AUDITING
from cranfield.experiments.file import experiment_of

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")


def test_the_tables_are_made_of_the_declarations():
    decisions = [
        f"| `{variable_decision.name}` | {variable_decision.kind} | {variable_decision.says} |"
        for variable_decision in VARIABLE_DECISIONS.values()
    ]
    assert "\n".join(["| decision | kind | what it decides |", "|---|---|---|", *decisions]) in PAGE
    options = [
        f"| `{preset}` | `{decision}` | {', '.join(f'`{option}`' for option in options)} |"
        for preset, vary in PRESETS.items()
        for decision, options in vary.items()
    ]
    assert "\n".join(["| preset | decision | options |", "|---|---|---|", *options]) in PAGE


def test_every_key_is_on_the_page():
    assert [name for name in AUDITING if f"| `{name}` |" not in PAGE] == []


def test_the_example_file_can_be_audited():
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, flags=re.S)
    settings = audit_settings(experiment_of(tomllib.loads(text)))
    assert {decision.name: decision.kind for decision in settings.varied}["threshold"] == "question"


def test_every_preset_fits_the_usual_budget():
    from cranfield.audits.enumeration import enumerate_universes

    for name in PRESETS:
        assert enumerate_universes(audit_settings(Experiment(audit={"preset": name}))).complete, name
