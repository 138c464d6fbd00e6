"""The page about audits says what can be opened."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from cranfield.audits.asking import menu_of
from cranfield.audits.options import OPENABLE
from cranfield.audits.presets import PRESETS
from cranfield.experiments import Experiment
from cranfield.experiments.experiment import AUDITING
from cranfield.experiments.file import experiment_of

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")


def test_the_tables_are_made_of_the_declarations():
    decisions = [f"| `{openable.name}` | {openable.kind} | {openable.says} |" for openable in OPENABLE.values()]
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
    menu = menu_of(experiment_of(tomllib.loads(text)))
    assert {opening.name: opening.kind for opening in menu.openings}["threshold"] == "question"


def test_every_preset_fits_the_usual_budget():
    from cranfield.audits.crossing import cross

    for name in PRESETS:
        assert cross(menu_of(Experiment(audit={"preset": name}))).complete, name
