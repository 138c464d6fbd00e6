"""``cranfield data fetch``: a known dataset, downloaded or taken from disk, checked and cached."""

from __future__ import annotations

from pathlib import Path

import click

from cranfield.cli._group import process_options, unpack_option
from cranfield.cli._output import say, say_line

_EXAMPLES = """\b
Examples:
  cranfield data fetch ml-1m
  cranfield data fetch netflix --from nf_prize_dataset.tar.gz
  cranfield data fetch coat --from ~/data/coat
"""


@click.command(epilog=_EXAMPLES)
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
def command(name: str, from_path: Path | None, force: bool, no_verify: bool) -> None:
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
