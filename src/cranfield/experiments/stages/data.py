"""The stage `data`: ratings, read and filtered (decision A1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cranfield._own_code import names_code
from cranfield._registry import parse
from cranfield.data import Ratings, describe, filters, write
from cranfield.experiments.codes import (
    Vocabularies,
    read_ratings,
    read_vocabularies,
    save_ratings,
    save_vocabularies,
    step_of,
)
from cranfield.experiments.decisions import Decisions
from cranfield.experiments.inputs import filtered, load, origin, together
from cranfield.experiments.pipeline import Pipeline, Unit
from cranfield.experiments.stage import LEAST, Size, Stage
from cranfield.experiments.user_code import own_of
from cranfield.recommenders import recommender
from cranfield.store import Made

VOCABULARIES = ("users.parquet", "items.parquet")
FEATURE_FILES = ("users-features.parquet", "items-features.parquet")


class _Data(Stage[dict[str, Ratings]]):
    name, title, level, inputs = "data", "Reading", "source", ()
    exported = True

    def made_of(self, line: Pipeline, unit: Unit) -> dict[str, Any]:
        decisions = line.decisions
        return {
            "source": origin(line.experiment, unit.source, fetching=line.store.makes),
            "overlap": decisions.overlap,
            "filters": list(decisions.filters),
            "own": own_of(filters.registry, decisions.filters),
            "seed": line.experiment.seed
            if any(draws(filters.registry, spelling) for spelling in decisions.filters)
            else None,
        }

    def make(self, line: Pipeline, unit: Unit, place: Path) -> Made:
        parts = {
            name: filtered(line.experiment, ratings)
            for name, ratings in load(line.experiment, unit.source, line.decisions.overlap).items()
        }
        if len(parts) == 1:
            parts = {name: ratings.compact() for name, ratings in parts.items()}
        whole = together(list(parts.values()))
        paths = save_vocabularies(whole, place)
        paths += [save_ratings(ratings, place / f"{name}.parquet") for name, ratings in parts.items()]
        described = describe(whole).as_dict()
        facts = {
            "description": {key: value for key, value in described.items() if key not in ("name", "history")},
            "parts": {
                name: {
                    "fingerprint": ratings.fingerprint,
                    "ratings": len(ratings),
                    "history": [step.as_dict() for step in ratings.history],
                }
                for name, ratings in parts.items()
            },
        }
        return paths, facts

    def read(self, line: Pipeline, unit: Unit) -> dict[str, Ratings]:
        """Return the ratings, whole or in parts, with one vocabulary."""
        artifact, ids = line.artifact(self, unit), vocabularies(line, unit)
        parts = artifact.facts["parts"]
        history = [step_of(record) for record in next(iter(parts.values()))["history"]]
        return {name: read_ratings(artifact.path(f"{name}.parquet"), ids, unit.source.name, history) for name in parts}

    def export(self, line: Pipeline, unit: Unit, folder: Path) -> list[Path]:
        """Write the ratings with their ids."""
        home = folder / "data" / unit.source.name
        return [write(ratings, home / f"{name}.parquet") for name, ratings in line.read(self, unit).items()]

    def seconds(self, line: Pipeline, unit: Unit, size: Size) -> float:  # noqa: ARG002
        return max(size.ratings * 1e-6, LEAST)


def decided(line: Pipeline, unit: Unit) -> Decisions:
    """Return the decisions resolved for a set of ratings, as far as the ratings have been read."""
    artifact, decisions = line.artifact(DATA, unit), line.decisions
    histogram = artifact.facts.get("description", {}).get("histogram")
    if not histogram:
        return decisions
    lowest, highest = min(row["low"] for row in histogram), max(row["high"] for row in histogram)
    decided_on: Decisions = line.remember("decisions", artifact.key, lambda: decisions.on(lowest, highest))
    return decided_on


def vocabularies(line: Pipeline, unit: Unit) -> Vocabularies:
    """Return the users and items of a set of ratings."""
    artifact = line.artifact(DATA, unit)
    folder = artifact.path("users.parquet").parent
    known: Vocabularies = line.remember("vocabularies", artifact.key, lambda: read_vocabularies(folder))
    return known


def features_of(line: Pipeline, unit: Unit, spelling: str) -> dict[str, Any]:
    """Return the checksums of user and item features, if a system may use them; otherwise nothing."""
    files = line.artifact(DATA, unit).files
    features = [files[file] for file in FEATURE_FILES if file in files]
    uses = features and (names_code(spelling) or recommender(spelling).uses_features)
    return {"features": features} if uses else {}


def draws(registry: Any, spelling: str) -> bool:
    """Whether a spelled function draws at random, that is, whether it has a seed."""
    name = parse(spelling).name
    own = next(signature for signature in map(parse, registry.signatures()) if signature.name == name)
    return "seed" in dict(own.parameters)


DATA = _Data()
