"""``cranfield data``: list, fetch, describe, filter and simulate rating data."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import click
import polars as pl

from cranfield import simulate
from cranfield._errors import SettingError
from cranfield._record import record as record_checksum
from cranfield._version import __version__
from cranfield.cli._options import (
    CommandGroup,
    choice_option,
    common_options,
    process_options,
    refuse_idle,
    unpack_option,
)
from cranfield.cli._output import inform, output_options, put, put_result, say, say_line
from cranfield.cli._reading import RATINGS, READING_OPTIONS, file_or_dataset, reading_options
from cranfield.data import Ratings, describe, read, write
from cranfield.data import filters as data_filters
from cranfield.experiments import SIMULATIONS
from cranfield.simulate import World, check_pairs
from cranfield.tables import check_format


@click.group(cls=CommandGroup)
def data_command() -> None:
    """List, fetch, describe, filter and simulate rating data."""


_SHOWN = ("name", "users", "items", "ratings", "scale", "times", "get", "cached", "licence")

_LIST = """\b
Examples:
  cranfield data list
  cranfield data list ml-                     those whose name contains "ml-"
  cranfield data list --format csv > datasets.csv
"""


@data_command.command(epilog=_LIST, short_help="List the known datasets.")
@click.argument("text", default="")
@choice_option(
    "--format", ["table", "csv", "json"], "The output format; csv and json also contain the home page and the citation."
)
def list_command(text: str, format: str) -> None:
    """List the known datasets, or those whose name contains TEXT."""
    from cranfield.datasets import listing

    frame = listing().filter(pl.col("name").str.contains(text.lower(), literal=True))
    if format == "csv":
        click.echo(frame.write_csv(), nl=False)
    elif format == "json":
        click.echo(json.dumps(frame.to_dicts(), indent=2, ensure_ascii=False))
    else:
        click.echo(_table([list(_SHOWN), *([_cell(row[name]) for name in _SHOWN] for row in frame.to_dicts())]))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "-"
    if value is None:
        return "?"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(rows: list[list[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_SHOWN))]
    numbers = [name in ("users", "items", "ratings") for name in _SHOWN]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width) for cell, width, number in zip(row, widths, numbers)
        ).rstrip()
        for row in rows
    )


_FETCH = """\b
Examples:
  cranfield data fetch ml-1m
  cranfield data fetch netflix --from nf_prize_dataset.tar.gz
  cranfield data fetch coat --from ~/data/coat
"""


@data_command.command(epilog=_FETCH, short_help="Download a known dataset, or take it from a file you have.")
@click.argument("name")
@click.option(
    "--from",
    "from_path",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Import it from this archive, file or folder instead of downloading it.",
)
@click.option("--force", is_flag=True, help="Fetch it again even if it is in the cache.")
@click.option("--no-verify", is_flag=True, help="Do not compare its counts with the published ones.")
@unpack_option
@process_options
def fetch_command(name: str, from_path: Path | None, force: bool, no_verify: bool) -> None:
    """Download the dataset NAME, or import it from a file, and print where it is stored.

    'cranfield data list' shows the names. Fetched data are kept in the folder named by CRANFIELD_CACHE, or else in the
    usual cache folder of the system.
    """
    from cranfield.datasets import fetch, find

    dataset = find(name)
    there = fetch(dataset, from_path=from_path, force=force, verify=not no_verify)
    for part, cached in there.parts.items():
        say(f"{dataset.name if part == 'all' else f'{dataset.name} ({part})'}: {cached.counts}")
        say_line(f"  {there.path(part)}")
    say(f"  licence: {dataset.licence}\n  cite: {dataset.citation}")


_DESCRIBE = "\b\nKeys of --read:\n" + "\n".join(f"  {key:<12} {said}" for key, (_, said) in RATINGS.items())
_DESCRIBE += """

\b
Examples:
  cranfield data describe ratings.csv
  cranfield data describe ratings.dat.gz --read 'separator=::'
  cranfield data describe log.csv --read 'user=visitor, item=page, rating=none, repeated=last'
  cranfield data describe archive.zip/ml-1m/ratings.dat
  cranfield data describe ml-1m --format json
"""


@data_command.command(epilog=_DESCRIBE, short_help="Say what is in a file of ratings or a known dataset.")
@click.argument("source", metavar="FILE|NAME")
@output_options("table", "json", "csv")
@reading_options
@process_options
def describe_command(source: str, format: str, out: str | None, reading: dict[str, Any]) -> None:
    """Describe a file of ratings, or a known dataset (see: cranfield data list).

    It prints users, items, ratings, density, the Gini index over users and over items, quartiles of the profile
    sizes, the histogram of the ratings, the time span, and how the file was read.
    """
    put_result(describe(file_or_dataset(source, reading)), format, out)


_FILTER = "\b\nFilters:\n" + "\n".join(f"  {line}" for line in data_filters.registry.signatures(without=("seed",)))
_FILTER += """

\b
Examples:
  cranfield data filter ratings.csv --filter 'k_core(k=5)' --out core.parquet
  cranfield data filter ratings.csv --filter 'positives(threshold=4)' --filter 'min_ratings(user=5)' --out liked.csv
  cranfield data filter ratings.csv --filter 'drop_head(share=0.33, of=ratings)' --out tail.tsv
  cranfield data filter ratings.csv --filter 'time_window(start=2001-01-01, end=2002-01-01)' --out year.csv
"""


@data_command.command(epilog=_FILTER, short_help="Filter ratings, write the result, and print what was removed.")
@click.argument("file", metavar="FILE|NAME")
@click.option(
    "--filter",
    "filters",
    multiple=True,
    required=True,
    metavar="FILTER",
    help="A filter, as listed below. Repeat for several.",
)
@click.option("--out", required=True, metavar="FILE", help="Where to write: .parquet, .csv or .tsv.")
@reading_options
@common_options
def filter_command(file: str, filters: tuple[str, ...], out: str, reading: dict[str, Any], seed: int) -> None:
    """Filter ratings, write the result, and print what was removed.

    FILE may be CSV, TSV or other text, plain or compressed, or Parquet, or the NAME of a known dataset. Filters are
    applied in the given order. A record of them is written next to the ratings: the same name, ending in .json.
    """
    _check_outputs(out)
    ratings = file_or_dataset(file, reading)
    kept = data_filters.apply(ratings, filters, seed=seed)
    _write_with_record(kept, out)
    for step in kept.history[len(ratings.history) :]:
        inform(f"{step.action}({', '.join(f'{name}={value}' for name, value in step.settings.items())})")
        for kind, (before, after) in step.effect.items():
            inform(f"  {kind:<8} {before:>13,} → {after:>13,}   removed {before - after:,}")
        inform(*(f"  {note}" for note in step.notes))
    inform(f"written to {out}: {kept}")


_SIMULATE = "\b\nSimulations:\n" + "\n".join(f"  {line}" for line in SIMULATIONS.signatures(without=("seed",)))
_SIMULATE += """

\b
Examples:
  cranfield data simulate --out world.parquet --truth truth.parquet
  cranfield data simulate 'world(popularity_bias=0, relevance_bias=0)' --out fair.csv
  cranfield data simulate 'world(users=6040, items=3706, ratings=1000209)' --out big.parquet
  cranfield data simulate 'popularity(alpha=2, histogram=1:0.25/5:0.75)' --out steep.csv
  cranfield data simulate 'popularity(alpha=0)' --like ratings.csv --out flat.csv
"""


@data_command.command(epilog=_SIMULATE, short_help="Write simulated ratings, with the truth behind them.")
@click.argument("simulation", default="world", metavar="[SIMULATION]")
@click.option("--out", required=True, metavar="FILE", help="Where to write the ratings: .parquet, .csv or .tsv.")
@click.option("--truth", metavar="FILE", help="world: also write the true grade of every pair.")
@click.option("--like", metavar="FILE", help="popularity: ratings to imitate.")
@reading_options
@common_options
def simulate_command(
    simulation: str, out: str, truth: str | None, like: str | None, reading: dict[str, Any], seed: int
) -> None:
    """Simulate ratings and write them, with a record of all settings (same name, ending in .json).

    A SIMULATION is a world with known truth, or ratings that only follow a popularity curve, as listed below.
    """
    spelling = SIMULATIONS.spelling(simulation)
    given = {"seed": seed, **dict(spelling.parameters)}
    for option, name, of in (("--truth", truth, "world"), ("--like", like, "popularity")):
        if name is not None and spelling.name != of:
            raise SettingError(f"{option} goes with the simulation {of}, not with {spelling.name}; leave it out")
    _check_outputs(out, *([] if truth is None else [truth]))
    if truth is not None:  # one that is too large is refused before the world is made
        usual = inspect.signature(simulate.world).parameters
        check_pairs(*(given.get(name, usual[name].default) for name in ("users", "items")))
    if like is None:
        refuse_idle("without --like, a file of ratings to read", *READING_OPTIONS)
    else:
        given["like"] = read(like, **reading)
    simulated = SIMULATIONS[spelling.name](**given)
    ratings = simulated.ratings if isinstance(simulated, World) else simulated
    whole = simulated.truth() if truth and isinstance(simulated, World) else None
    record = _write_with_record(ratings, out, truth=Path(truth).name if truth else None)
    if truth and whole is not None:
        record_checksum(write(whole, truth))
    inform(f"{out}: {ratings}", *([] if whole is None else [f"{truth}: {whole}"]), f"{record}: how they were made")
    inform(*(f"note: {note}" for step in ratings.history for note in step.notes), err=True)


# Ratings written to a file, with a record of how they were made next to it.


def _check_outputs(out: str, *others: str) -> None:
    """Refuse files that cannot be written or that are not ours to replace, before any work is lost."""
    for path in (out, *others):
        check_format(path)
    if len({Path(path) for path in (out, *others)}) <= len(others):
        raise SettingError(f"{out} is given twice as an output file; choose another for one of them")
    beside = _beside(out)
    if beside.exists() and not _is_record(beside, out):
        raise SettingError(
            f"the record of {out} would replace {beside}, which is another file; choose another name with --out, or "
            "move that file"
        )


def _write_with_record(ratings: Ratings, out: str, **more: Any) -> Path:
    """Write ratings, and the record with all their steps; return the record."""
    rule = {} if ratings.events is None else {"repeated": str(ratings.events.merging)}
    record_checksum(write(ratings, out), rule)
    record = {
        "cranfield": __version__,
        "ratings": Path(out).name,
        **more,
        "fingerprint": ratings.fingerprint,
        "steps": [step.as_dict() for step in ratings.history],
    }
    put(json.dumps(record, indent=2, ensure_ascii=False), str(_beside(out)))
    return _beside(out)


def _beside(out: str) -> Path:
    return Path(out).with_suffix(".json")


def _is_record(path: Path, out: str) -> bool:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return "cranfield" in record and bool(record["ratings"] == Path(out).name)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return False
