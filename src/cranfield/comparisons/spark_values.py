"""Per-user values in a Spark dataframe, one column per system, as scores that stay on Spark."""

from __future__ import annotations

from typing import Any

import numpy as np

from cranfield._errors import InputError
from cranfield.comparisons.samples import as_scores
from cranfield.data.spark import set_worker_python
from cranfield.measures.score_parts import Census, ScoreParts, facts_of
from cranfield.measures.spark import SparkStore

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")


def scores_on_spark(frame: Any) -> ScoreParts:
    """Return the values of a dataframe as scores; the column ``user`` holds the ids, and null means no value."""
    from pyspark.sql import functions as F

    systems = [name for name in frame.columns if name != "user"]
    for name, kind in frame.dtypes:
        if name != "user" and not kind.startswith(("decimal", *_NUMBERS)):
            raise InputError(f"the values of {name!r} are not numbers but {kind}", remedy="give one number per user")
    user = F.col("user") if "user" in frame.columns else F.monotonically_increasing_id()
    missing = F.lit(float("nan"))
    rows = frame.select(
        user.alias("user"),
        *(F.lit(1).cast("bigint").alias(name) for name in ("judged", "relevant")),
        *(F.lit(True).alias(f"covered {s}") for s in range(len(systems))),
        *(
            F.coalesce(F.col(f"`{name}`").cast("double"), missing).alias(f"value {s} 0")
            for s, name in enumerate(systems)
        ),
    )
    set_worker_python(frame.sparkSession)
    nobody = as_scores({name: np.zeros(0) for name in systems})
    store = SparkStore(rows, nobody)
    census = ScoreParts(nobody, store, Census.of(nobody)).sum(Census.of)
    facts = facts_of(nobody, census)
    return ScoreParts(facts, SparkStore(rows, facts), census)
