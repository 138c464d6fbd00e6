"""The stages that write for people: `experiment` (its file), `card` and `report`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cranfield._files import write_text
from cranfield.experiments.card import card
from cranfield.experiments.card_formats import markdown, paragraph
from cranfield.experiments.file import moved, toml_of
from cranfield.experiments.pipeline import OUT, Pipeline, Size, Stage, Unit
from cranfield.experiments.user_code import own
from cranfield.store import Made, versions

if TYPE_CHECKING:
    from cranfield.experiments.results import Results


class _Experiment(Stage[None]):
    name, title, level = "experiment", "Reading the experiment", "experiment"
    version = 2
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        return {"text": stated(line)}

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        return [write_text(place / OUT / "experiment.toml", stated(line))], {}


def stated(line: Pipeline) -> str:
    """Return the text of the experiment file, with file names relative to its folder."""
    return toml_of(moved(line.experiment, line.store.path))


EXPERIMENT = _Experiment()


class _Card(Stage[dict[str, Any]]):
    name, title, level = "card", "Writing the card", "experiment"
    version = 2
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        return {"made": line.digests(), "versions": line.store.versions(), "notes": dict(line.experiment.notes)}

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        contents = card(line)
        texts = {
            "card.json": json.dumps(contents, indent=1, ensure_ascii=False) + "\n",
            "card.md": markdown(contents),
            "card.tex": paragraph(contents),
        }
        return [write_text(place / OUT / name, text) for name, text in texts.items()], {}

    def read(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        return json.loads(line.artifact(self, unit).path(f"{OUT}/card.json").read_text(encoding="utf-8"))


CARD = _Card()


# Libraries that draw the figures of a report.
_DRAWING = ("altair", "vl-convert-python")
# Seconds to load these libraries; and to draw, per user and system.
_LOADING, _DRAWN = 3.0, 1e-4


class Report(Stage[None]):
    """A report on the results: ``write`` writes it into a folder and returns the files; None if it is only planned."""

    name, title, level = "report", "Writing the report", "experiment"
    exported = True

    def __init__(self, write: Callable[[Results, Path], list[Path]] | None = None) -> None:
        self._write = write

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:  # noqa: ARG002
        """Return the digests of all artifacts, the code of the report and the versions of its libraries."""
        code = [] if self._write is None else own(self._write)
        return {"made": line.digests(), "own": code, "versions": versions(_DRAWING)}

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:  # noqa: ARG002
        """Write the report."""
        from cranfield.experiments.results import Results

        assert self._write is not None
        return self._write(Results.of(line), place / OUT), {}

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        """Estimate how long drawing takes."""
        return len(line.experiment.data) * _LOADING + _DRAWN * size.users * len(line.experiment.systems)
