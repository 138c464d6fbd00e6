"""The page about experiments says what happens."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from cranfield.experiments import DECISIONS, Decisions
from cranfield.experiments.file import SYSTEM, TOP, experiment_of

PAGE = Path(__file__).parents[2] / "docs" / "experiment.md"


def described() -> str:
    """Return the table for the docs: every decision with its letter, what it decides, its choices and its default."""
    lines = ["| | key | what it decides | default |", "|---|---|---|---|"]
    for name, declared in DECISIONS.items():
        words = " or ".join(f"`{word}`" for word in declared.metadata["choices"])
        values = declared.default if isinstance(declared.default, tuple) else (declared.default,)
        usual = ", ".join(f"`{str(value).lower() if isinstance(value, bool) else value}`" for value in values) or "none"
        says = f"{declared.metadata['says']}: {words}" if words else declared.metadata["says"]
        lines.append(f"| {declared.metadata['letter']} | `{name}` | {says} | {usual} |")
    return "\n".join(lines)


def test_the_example_files_are_experiments():
    whole, searched, own, _ = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), flags=re.S)
    assert experiment_of(tomllib.loads(whole)).seed == 7
    assert experiment_of(tomllib.loads(searched)).systems[0].tuning.trials == 20
    assert experiment_of(tomllib.loads(own)).systems[1].spelling == "my_package.module:MyRecommender(k=5)"


def test_every_key_and_decision_is_on_the_page():
    page = PAGE.read_text()
    for name in (*TOP, *SYSTEM[2:], *Decisions().as_dict()):
        assert re.search(rf"`\[*{name}[.\w]*\]*`|^{name} = ", page, flags=re.M), name


def test_the_table_of_decisions_is_made_of_their_declarations():
    assert described() in PAGE.read_text()
