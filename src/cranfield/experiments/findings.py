"""Results of an experiment on a set of ratings: averages and comparisons, by fold and overall (C3, C4, D)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from cranfield._files import write_text
from cranfield._table import Table
from cranfield.comparisons import Comparison, compare_scores, tested_average, window_leads
from cranfield.experiments.decisions import IN_TABLES, Decisions
from cranfield.measures import PLAIN, Averaging, Scores, join_folds
from cranfield.tables import write_table


@dataclass(frozen=True, eq=False)
class Findings:
    """The averages and comparisons on a set of ratings.

    Parameters
    ----------
    data
        What the ratings are called.
    scores
        All folds and repetitions together; a user's values are averaged over them.
    comparison
        The comparison of these scores; None for a single system, or if no metric has a value per user.
    averages, comparisons
        Tidy frames with columns data, repetition and fold; the last two are null in rows for all folds together.
    averaging
        How lists are averaged.
    """

    data: str
    scores: Scores
    comparison: Comparison | None
    averages: pl.DataFrame
    comparisons: pl.DataFrame
    averaging: Averaging = PLAIN

    @cached_property
    def sentences(self) -> list[str]:
        """The verdict, one sentence per metric, and how stable the winner is over time windows."""
        if self.comparison is not None:
            return [*self.comparison.sentences(), *self.window_sentences]
        why = self.scores.nothing_relevant or "it is undefined for every user"
        return [
            f"{row['metric']}: nothing can be said, since {why}."
            if np.isnan(row["mean"])
            else f"{row['metric']}: {row['system']} has {row['mean']:.4f}"
            for row in self.averages.filter(pl.col("fold").is_null()).iter_rows(named=True)
        ]

    @property
    def window_sentences(self) -> list[str]:
        """Whether the winner is stable over time windows, one sentence per metric; empty without windows."""
        return [lead.sentence for lead in window_leads(self.scores, self.averaging)]

    def table(self, decisions: Decisions) -> Table:
        """Return the averages as a readable table."""
        return self.scores.table(decisions.averaging)

    def write(self, folder: Path, decisions: Decisions) -> list[Path]:
        """Write the frames, the tables and the verdict; return the files."""
        home, tables = folder / "results" / self.data, folder / "tables"
        paths = [write_table(self.averages, home / "averages.parquet")]
        paths += [write_table(self.averages, tables / f"{self.data}-averages.csv")]
        table = self.table(decisions)
        words = decisions.words(without=IN_TABLES)
        paths += [_write(tables / f"{self.data}-averages.tex", table.titled(self.data, "averages", words).latex())]
        paths += [_write(tables / f"{self.data}-averages.md", table.markdown())]
        if self.comparison is not None:
            paths += [write_table(self.comparisons, home / "comparisons.parquet")]
            paths += [write_table(self.comparisons, tables / f"{self.data}-comparisons.csv")]
            words = ", ".join(filter(None, (words, f"{decisions.lists} lists")))
            compared = self.comparison.printed().titled(self.data, "comparisons", words)
            paths += [_write(tables / f"{self.data}-comparisons.tex", compared.latex())]
        return [*paths, _write(home / "results.json", json.dumps(self.as_dict(), indent=1, ensure_ascii=False))]

    def as_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON (NaN becomes null)."""
        return {
            "data": self.data,
            "sentences": self.sentences,
            "averages": _rows(self.averages),
            "comparisons": _rows(self.comparisons),
            "notes": list(dict.fromkeys([*self.scores.notes, *(self.comparison.notes if self.comparison else ())])),
        }


def findings(
    data: str,
    folds: Sequence[tuple[int, int, Scores]],
    decisions: Decisions,
    *,
    seed: int = 0,
    trained_once: tuple[str, ...] = (),
) -> Findings:
    """Average and compare scores, for each fold and for all folds together.

    Parameters
    ----------
    data
        What the ratings are called.
    folds
        The scores of each repetition and fold, both counted from 0.
    decisions
        Of these, C3, C4 and D are used here.
    seed
        Seed of tests that draw at random.
    trained_once
        Randomised systems that were trained only once.
    """
    whole = join_folds([scores for _, _, scores in folds], [repetition for repetition, _, _ in folds])
    whole.check_measured()
    apart = [(repetition + 1, fold + 1, scores) for repetition, fold, scores in folds] if len(folds) > 1 else []
    cases: list[tuple[int | None, int | None, Scores]] = [(None, None, whole), *apart]
    # Only the verdict on all folds together is put into words.
    compared = [_compared(scores, decisions, seed, in_words=scores is whole) for _, _, scores in cases]
    main = None if compared[0] is None else replace(compared[0], trained_once=trained_once)
    return Findings(
        data,
        whole,
        main,
        pl.concat([_labelled(scores.frame(decisions.averaging), data, r, f) for r, f, scores in cases]),
        pl.concat(
            [
                _labelled(comparison.frame(), data, r, f)
                for (r, f, _), comparison in zip(cases, compared)
                if comparison is not None
            ]
            or [pl.DataFrame()]
        ),
        decisions.averaging,
    )


def _compared(scores: Scores, decisions: Decisions, seed: int, *, in_words: bool) -> Comparison | None:
    if len(scores.systems) < 2 or not np.isfinite(scores.values).any():
        return None
    scores.check_measured()
    comparing = decisions.comparing
    averaging = tested_average(comparing.significance, decisions.tested)
    comparison = compare_scores(scores, comparing, averaging, seed=seed, among_served=in_words)
    is_shown = decisions.tested == decisions.averaging
    return comparison if is_shown else replace(comparison, beside=str(decisions.averaging.average))


def _labelled(frame: pl.DataFrame, data: str, repetition: int | None, fold: int | None) -> pl.DataFrame:
    labels = [
        pl.lit(data).alias("data"),
        pl.lit(repetition, dtype=pl.Int64).alias("repetition"),
        pl.lit(fold, dtype=pl.Int64).alias("fold"),
    ]
    return frame.select(*labels, pl.all())


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return frame.with_columns(pl.selectors.float().fill_nan(None)).to_dicts() if frame.width else []


def _write(path: Path, text: str) -> Path:
    write_text(path, text.rstrip("\n") + "\n")
    return path
