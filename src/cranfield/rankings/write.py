"""Writing of runs: Parquet, CSV, TSV, or TREC."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from cranfield._errors import InputError, SettingError
from cranfield._files import whole_file
from cranfield._polars import write_csv
from cranfield.rankings.layouts import ONE_RELEVANT
from cranfield.rankings.run import Run
from cranfield.tables import write_table

_TREC_ENDINGS = (".trec", ".run")


def write_run(run: Run, path: str | Path) -> Path:
    """Write a run, in the format of the file's ending.

    Parameters
    ----------
    run
        The lists to write. An empty list is not written; its user is not covered in either case.
    path
        The file, ending in ``.parquet``, ``.csv`` or ``.tsv`` (columns user, item, rank and, if known, score and
        prediction; one-relevant lists have one row per list, with its length; the group of the list if there are
        groups), or in ``.trec`` or ``.run`` (user Q0 item rank score tag, where the tag is the run's name). The file
        appears whole or not at all.

    Notes
    -----
    trec_eval orders a list by its scores alone. So a TREC file of a run without scores has the scores -1, -2, -3, ...,
    and a run whose ranks leave places out cannot be written as one.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.rankings.read import read_run
    >>> run = read_run({"ann": {"x": 0.5, "y": 0.75}}, name="knn")
    >>> print(write_run(run, Path(tempfile.mkdtemp()) / "knn.run").read_text(), end="")
    ann Q0 y 1 0.75 knn
    ann Q0 x 2 0.5 knn
    """
    path = Path(path)
    trec = path.suffix.lower() in _TREC_ENDINGS
    if run.ranks is not None and trec:
        raise SettingError(
            f"the lists of {run.name} are incomplete and would be read back as complete ones; write .parquet or .tsv"
        )
    if run.one_relevant:
        columns = ONE_RELEVANT if run.groups is None else (*ONE_RELEVANT, "group")
        return write_table(run.frame().with_columns(length=pl.Series(run.list_lengths)).select(columns), path)
    if not trec:
        return write_table(run.frame(), path)
    table = _trec_table(run)
    with whole_file(path) as temporary:
        write_csv(table, temporary, include_header=False, separator=" ", quote_style="never")
    return path


def _trec_table(run: Run) -> pl.DataFrame:
    frame = run.frame()
    tag = "_".join(run.name.split()) or "run"
    score = -pl.col("rank") if run.scores is None or run.made_scores else pl.col("score")
    for role in ("user", "item"):
        spaced = frame[role].cast(pl.String).str.contains(r"\s")
        if spaced.any():
            raise InputError(
                f"{frame[role][spaced.arg_max() or 0]!r} holds white space, which separates the columns of a TREC run",
                column=role,
                remedy="write .tsv or .parquet instead",
            )
    return frame.select(
        "user", pl.lit("Q0").alias("q0"), "item", "rank", score.alias("score"), pl.lit(tag).alias("tag")
    )
