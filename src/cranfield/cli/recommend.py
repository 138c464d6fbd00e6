"""``cranfield recommend``: train systems and write their ranked lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cranfield._errors import SettingError
from cranfield._settings import settings
from cranfield.cli._given import refuse_idle
from cranfield.cli._group import common_options, jobs_option
from cranfield.cli._output import make_folder, say
from cranfield.cli._reading import reading_options
from cranfield.data import read
from cranfield.rank import file_name, recommend_each, write_run
from cranfield.recommend import signatures
from cranfield.split import given

_FORMATS = ["parquet", "tsv", "csv", "trec"]

_EPILOG = "\b\nSystems:\n" + "\n".join(f"  {line}" for line in signatures())
_EPILOG += """

\b
Examples:
  cranfield recommend --train train.csv -s popularity -s 'knn(k=50)' --out runs
  cranfield recommend --train train.csv -s knn --fill popularity --min-ratings 5 --out runs --format tsv
  cranfield recommend --train train.csv --test test.csv -s slim --candidates test --out runs
  cranfield recommend --train train.csv --test test.csv -s slim --relevant one --nonrelevant 99 --threshold 4 --out r
  cranfield evaluate --test test.csv runs/*.parquet -m nDCG@10 --threshold 4
"""


class _ListLength(click.ParamType[Any]):
    """A number of items, or ``all``."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        """Return the number, or None for ``all``."""
        if value == "all":
            return None
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor 'all'", param, ctx)


@click.command(epilog=_EPILOG)
@click.option("--train", required=True, metavar="FILE", help="The ratings to learn from.")
@click.option("--test", metavar="FILE", help="The held-out ratings, for what is restricted by them.")
@click.option("--system", "-s", "systems", multiple=True, metavar="SYSTEM", help="A system, as listed below.")
@click.option("-n", "n", type=_ListLength(), default="100", show_default=True, help="The length of the lists, or all.")
@click.option("--out", required=True, metavar="FOLDER", help="Where to write one file a system.")
@click.option("--format", type=click.Choice(_FORMATS), default="parquet", show_default=True, help="What to write.")
@click.option("--resume", is_flag=True, help="Leave files that are there as they are, and make only the others.")
@click.option(
    "--min-ratings", type=int, default=0, show_default=True, help="Serve users with at least so many training ratings."
)
@click.option("--sample", type=float, help="Serve so many users, or such a share of them, drawn at random.")
@click.option(
    "--fill",
    default="none",
    show_default=True,
    metavar="SYSTEM",
    help="What orders the items that a system cannot score, after all others: none leaves them out.",
)
@click.option(
    "--candidates",
    type=click.Choice(["all", "test"]),
    default="all",
    show_default=True,
    help="Recommend all items, or those that have a test rating.",
)
@click.option(
    "--relevant",
    type=click.Choice(["all", "one"]),
    default="all",
    show_default=True,
    help="Rank all relevant items of a user in one list, or each in a list of its own.",
)
@click.option(
    "--nonrelevant", type=int, help="Rank only so many items that are not relevant, drawn at random for each user."
)
@click.option("--condensed", is_flag=True, help="Rank only the items that the user rated in the test set.")
@click.option("--keep-seen", is_flag=True, help="Recommend also what the user rated in the training set.")
@click.option("--threshold", type=float, help="The lowest test rating that makes an item relevant.")
@click.option(
    "--overlap",
    type=click.Choice(["error", "test", "train"]),
    help="With --test: pairs in both files are an error, or stay in one of them.  [default: error]",
)
@jobs_option
@reading_options
@common_options
def command(
    train: str,
    test: str | None,
    systems: tuple[str, ...],
    n: int | None,
    out: str,
    format: str,
    resume: bool,
    overlap: str | None,
    reading: dict[str, Any],
    **asking: Any,
) -> None:
    """Train systems and write their ranked lists, one file a system."""
    if not systems:
        raise SettingError("no system is given; name at least one, such as -s popularity")
    files = {name: Path(out) / f"{stem}.{format}" for name, stem in file_name(systems).items()}
    if test is None and overlap is not None:
        raise SettingError("--overlap goes with --test; leave it out, or give the test set")
    if asking["relevant"] == "all" and asking["nonrelevant"] is None:
        refuse_idle("without --relevant one or --nonrelevant", "threshold")
    given_files = [Path(one).resolve() for one in (train, test) if one is not None]
    for path in files.values():
        if path.resolve() in given_files:
            raise SettingError(f"{path} holds ratings that are read; choose another folder with --out")
    wanted = [name for name, path in files.items() if not (resume and path.exists())]
    if wanted:
        ratings = read(train, **reading)
        data = ratings if test is None else given(ratings, read(test, **reading), overlap=overlap or "error")
        made = recommend_each(data, wanted, n, **asking)
        make_folder(out)
        for run in made:
            again = " (replaced)" if files[run.name].exists() else ""
            write_run(run, files[run.name])
            if not settings.quiet:
                say(f"{files[run.name]}: {len(run):,} lists, {len(run.items):,} items{_remark(run.counts)}{again}")
    if not settings.quiet and len(wanted) < len(files):
        say(f"{len(files) - len(wanted)} of {len(files)} runs were there already and stay as they are")


def _remark(counts: Any) -> str:
    empty = counts.get("empty_lists", 0)
    return f", {empty:,} users without a list" if empty else ""
