"""The card: the decisions behind the results, versions, seeds, fingerprints and notes."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any

from cranfield._record import Step
from cranfield.reports.html_page import ADDED, Reported, Section, on_page
from cranfield.reports.markup import notes, paragraphs, text
from cranfield.store import versions

_LIBRARIES = ("numpy", "scipy", "polars", "altair", "vl-convert-python")


def card(steps: Sequence[tuple[str, Step]], facts: Mapping[str, Any] | None = None) -> Section:
    """Return the card of steps, each with the name of its stage or decision, and of further facts such as the seed."""
    lines = {**(facts or {}), **versions(_LIBRARIES)}
    rows = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in lines.items())
    done = "".join(f"<dt>{text(name)}</dt><dd>{_step(step)}</dd>" for name, step in steps)
    said = list(dict.fromkeys(str(note) for _, step in steps for note in step.notes))
    whole = json.dumps([{"stage": name, **step.as_dict()} for name, step in steps], indent=1, default=str)
    code = f"<pre><code>{html.escape(whole)}</code></pre>"
    markup = (
        f'<h3>Decisions</h3><dl class="card">{done}</dl><h3>Versions and fingerprints</h3><dl class="card">{rows}</dl>'
        f"{notes(said)}<details><summary>All of it as JSON</summary>{code}</details>"
    )
    opening = "Every decision, the versions of all libraries, and fingerprints of the data."
    return Section("card", "How was it made?", paragraphs([opening]), markup)


@on_page(ADDED + 1)
def _on_page(reported: Reported) -> Section:
    results = (("compare", reported.comparison), ("assess", reported.assessment))
    done = [("measure", reported.scores.step), *((name, result.step) for name, result in results if result is not None)]
    return card([*reported.steps, *done])


def _step(step: Step) -> str:
    settings = ", ".join(
        f"{name.replace('_', ' ')} {_said(value)}" for name, value in step.settings.items() if value is not None
    )
    effect = ", ".join(f"{name.replace('_', ' ')} {_said(value)}" for name, value in step.effect.items())
    return f"<code>{text(step.action)}</code> {text(settings)}" + (f" — {text(effect)}" if effect else "")


def _said(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{_said(name)}: {_said(inner)}" for name, inner in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
