"""The stage `card`: everything a reader needs to repeat the experiment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cranfield._files import write_text
from cranfield.experiments.card import card
from cranfield.experiments.markdown import markdown
from cranfield.experiments.paragraph import paragraph
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import OUT, Stage
from cranfield.store import Made


class _Card(Stage[dict[str, Any]]):
    name, title, level = "card", "Writing the card", "experiment"
    inputs = ("data", "splits", "searches", "scores", "results", "segments", "assess")
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        return {"made": line.digests(), "versions": line.store.versions(), "notes": dict(line.experiment.notes)}

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        """Write ``card.json``, ``card.md`` and ``card.tex``."""
        contents = card(line)
        texts = {
            "card.json": json.dumps(contents, indent=1, ensure_ascii=False) + "\n",
            "card.md": markdown(contents),
            "card.tex": paragraph(contents),
        }
        for name, text in texts.items():
            write_text(place / OUT / name, text)
        return [place / OUT / name for name in texts], {}

    def read(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        """Return the card."""
        path = line.artifact(self, unit).path(f"{OUT}/card.json")
        contents: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return contents


CARD = _Card()
