"""Draw the figures of the explanations with cranfield itself: ``python docs/images/explain.py [NAME...]``.

Each shows the example of its page, in a simulated world whose truth is known. The files are the same, byte for byte, on
every machine.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

import cranfield as cf
from cranfield.reports import figures
from cranfield.studies.canamares_castells2018 import WORLDS
from cranfield.studies.canamares_castells2018.exhibits import draw_worlds
from cranfield.studies.canamares_castells2018.orders import KNOBS, world_readings, world_scores, worlds_frame

_HERE = Path(__file__).parent
_SYSTEMS = ["popularity", "ease", "knn(k=50)", "random", "average"]


def main() -> None:
    """Write all figures, or those that are named."""
    for name in sys.argv[1:] or _FIGURES:
        draw = _FIGURES[name]
        path = _HERE / f"{name}.svg"
        figures.save(draw(), path)
        print(f"{path.name}: {path.stat().st_size:,} bytes")


def _world() -> tuple[Any, Any]:
    world = cf.simulate.world(400, 300, 16_000, seed=1)
    return world, cf.splits.random(world.ratings, train=0.8, seed=1)


def _condensed() -> Any:
    """The order of five systems on full lists, on condensed lists, and in truth."""
    world, split = _world()
    runs = cf.recommend(split, _SYSTEMS, length="all")
    orders = {
        "full lists": _means(cf.measure(runs, split.test, "nDCG@10")),
        "condensed lists": _means(cf.measure(runs, split.test, "nDCG@10", lists="condensed")),
        "the truth": {run.name: float(world.true_value(run, "P@10").mean()) for run in runs},
    }
    return figures.orders(orders)


def _popularity() -> Any:
    """Measured precision of five systems against their true precision."""
    world, split = _world()
    runs = cf.recommend(split, _SYSTEMS, length=10)
    truth = {run.name: float(world.true_value(run, "P@10").mean()) for run in runs}
    return figures.against_truth(_means(cf.measure(runs, split.test, "P@10")), truth, "P@10 on held-out ratings")


def _means(scores: Any) -> dict[str, float]:
    return dict(zip(scores.systems, scores.average()[:, 0].tolist()))


def _splits() -> Any:
    """How often each system leads under each option of a small audit."""
    with tempfile.TemporaryDirectory() as folder:
        return _audit(Path(folder)).plot("map")


def _curve() -> Any:
    """Every universe of the same audit, sorted by its effect."""
    with tempfile.TemporaryDirectory() as folder:
        return _audit(Path(folder)).plot("curve")


def _audit(folder: Path) -> Any:
    cf.write(cf.simulate.world(300, 150, 9_000, tastes=4, seed=2).ratings, folder / "ratings.csv")
    (folder / "experiment.toml").write_text(
        """
seed = 2
[decisions]
metrics = ["nDCG@10"]
length = 50
[data.world]
file = "ratings.csv"
[systems]
neighbours = "knn(k=20)"
factors = "wrmf(factors=8, iterations=5)"
[audit.vary]
split = ["random(train=0.2)", "random(train=0.5)", "random(train=0.8)"]
metrics = ["P@10", "nDCG@10", "nDCG(gain=exp)@10"]
threshold = [3, 4, 5]
coverage = ["full", "reduced"]
""",
        encoding="utf-8",
    )
    return cf.audit(folder / "experiment.toml", out=folder / "audit")


def _metrics() -> Any:
    """How well each metric keeps the order of the systems when test ratings are removed."""
    _, split = _world()
    runs = cf.recommend(split, [*_SYSTEMS, "itemknn(k=20)", "puresvd(factors=10)", "knn(k=10)"], length=100)
    wanted = ["P@100", "nDCG@100", "P@10", "nDCG@10", "RR@100"]
    assessment = cf.assess(runs, split.test, wanted, samples=50, scenarios=["ratings"], significance="student", seed=1)
    return assessment.plot("robustness")


def _worlds() -> Any:
    """How well protocols find the truth as the biases of the observed ratings vary: 300 worlds, a few minutes."""
    frames = [
        world_scores(world_readings(knob, value, seed)).with_columns(knob=pl.lit(knob), value=pl.lit(float(value)))
        for knob, values in KNOBS.items()
        for value in values
        for seed in range(WORLDS)
    ]
    return draw_worlds(worlds_frame(pl.concat(frames)))


def _forest() -> Any:
    data = {}
    for name, seed in (("films", 1), ("songs", 2), ("books", 3), ("games", 4), ("shops", 5)):
        world = cf.simulate.world(150 * seed, 200, 5_000 * seed, seed=seed)
        split = cf.splits.random(world.ratings, train=0.8, seed=seed)
        runs = cf.recommend(split, ["ease", "knn(k=50)"], length=10)
        data[name] = cf.measure(runs, split.test, "nDCG@10")
    return cf.compare_datasets(data).plot()


_FIGURES: dict[str, Callable[[], Any]] = {
    "condensed": _condensed,
    "popularity": _popularity,
    "splits": _splits,
    "curve": _curve,
    "robustness": _metrics,
    "worlds": _worlds,
    "across": _forest,
}


if __name__ == "__main__":
    main()
