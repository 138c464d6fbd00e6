"""What the tests of audits share."""

from __future__ import annotations

import pytest

from cranfield.experiments import Experiment, Source, System


@pytest.fixture(scope="session")
def tiny():
    """An experiment of a fraction of a second; keywords change it."""

    def make(**changes: object) -> Experiment:
        usual = {
            "data": (Source("tiny", simulate="world(users=60, items=40, ratings=900)"),),
            "systems": (System("popular", "popularity"), System("near", "knn(k=5)")),
        }
        return Experiment(**{**usual, **changes})  # type: ignore[arg-type]

    return make
