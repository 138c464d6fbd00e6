"""``cranfield data simulate``: simulated ratings, with the truth about them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cranfield import simulate
from cranfield._errors import SettingError
from cranfield._record import record as record_checksum
from cranfield._settings import settings
from cranfield.cli._given import refuse_idle
from cranfield.cli._group import common_options
from cranfield.cli._output import say_line
from cranfield.cli._reading import READING_OPTIONS, reading_options
from cranfield.cli.data._written import check_outputs, write_with_record
from cranfield.data import Ratings, read, write
from cranfield.simulate import World, check_pairs

_EXAMPLES = """\b
Examples:
  cranfield data simulate --out world.parquet --truth truth.parquet
  cranfield data simulate --out fair.csv --popularity-bias 0 --relevance-bias 0
  cranfield data simulate --out big.parquet --users 6040 --items 3706 --ratings 1000209
  cranfield data simulate --out steep.csv --kind popularity --alpha 2
  cranfield data simulate --out flat.csv --kind popularity --like ratings.csv --alpha 0
"""

_KINDS: dict[str, Callable[..., World | Ratings]] = {"world": simulate.world, "popularity": simulate.popularity}


@click.command(epilog=_EXAMPLES)
@click.option("--out", required=True, metavar="FILE", help="Where to write the ratings: .parquet, .csv or .tsv.")
@click.option(
    "--kind",
    type=click.Choice(list(_KINDS)),
    default="world",
    show_default=True,
    help="A world with known truth, or ratings that only follow a popularity curve.",
)
@click.option("--users", type=int, help="The number of users.  [default: 1000, or as in --like]")
@click.option("--items", type=int, help="The number of items.  [default: 500, or as in --like]")
@click.option("--ratings", type=int, help="The number of ratings.  [default: 50000, or as in --like]")
@click.option("--activity", type=float, help="Spread of the profile sizes; 0: all equal.  [default: 1]")
@click.option(
    "--histogram",
    metavar="1=SHARE,2=SHARE,...",
    callback=lambda *given: _histogram(given[-1]),
    help="Share of each rating value (popularity) or true grade (world).  [default: like MovieLens]",
)
@click.option("--tastes", type=int, help="world: the number of latent tastes.  [default: 8]")
@click.option(
    "--taste", type=float, help="world: the share of taste in preferences; the rest is quality.  [default: 0.8]"
)
@click.option("--noise", type=float, help="world: error of a rating, in standard deviations.  [default: 0.4]")
@click.option(
    "--popularity-bias",
    type=float,
    help="world: how much more often users come across some items than others; 0: equally often.  [default: 1.8]",
)
@click.option(
    "--relevance-bias",
    type=float,
    help="world: how much more often people rate what they like; 0: no effect.  [default: 1.1]",
)
@click.option("--min-profile", type=int, help="world: the smallest profile.  [default: 5]")
@click.option("--max-profile", type=int, help="world: the largest profile.  [default: 60 % of the items]")
@click.option("--threshold", type=float, help="world: the lowest relevant grade, saved in the record.  [default: 4]")
@click.option("--times/--no-times", default=None, help="world: with or without times.  [default: with]")
@click.option("--drift", type=float, help="world: how much the rated items change over time, 0 to 1.  [default: 0.5]")
@click.option("--truth", metavar="FILE", help="world: also write the true grade of every pair.")
@click.option("--alpha", type=float, help="popularity: the skewness; 0 is uniform.  [default: 1.4, or fitted]")
@click.option("--c1", type=float, help="popularity: ratings of the least popular item.  [default: 0, or fitted]")
@click.option("--c2", type=float, help="popularity: shift of the ranks.  [default: 7.8 % of the items, or fitted]")
@click.option("--like", metavar="FILE", help="popularity: ratings to imitate.")
@reading_options
@common_options
def command(out: str, kind: str, truth: str | None, like: str | None, reading: dict[str, Any], **options: Any) -> None:
    """Simulate ratings and write them, with a record of all settings (same name, ending in .json)."""
    given = {name: value for name, value in options.items() if value is not None}
    _check_kind(kind, {**given, **({"truth": truth} if truth else {}), **({"like": like} if like else {})})
    check_outputs(out, *([] if truth is None else [truth]))
    if truth is not None:
        _check_truth(given)
    if like is None:
        refuse_idle("without --like, a file of ratings to read", *READING_OPTIONS)
    else:
        given["like"] = read(like, **reading)
    simulated = _KINDS[kind](**given)
    ratings = simulated.ratings if isinstance(simulated, World) else simulated
    whole = simulated.truth() if truth and isinstance(simulated, World) else None

    record = write_with_record(ratings, out, truth=Path(truth).name if truth else None)
    if truth and whole is not None:
        record_checksum(write(whole, truth))
    if settings.quiet:
        return
    say_line(f"{out}: {ratings}")
    if whole is not None:
        say_line(f"{truth}: {whole}")
    say_line(f"{record}: how they were made")
    for step in ratings.history:
        for note in step.notes:
            say_line(f"note: {note}", err=True)


def _histogram(text: str | None) -> dict[float, float] | None:
    if text is None:
        return None
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {float(value): float(share) for value, share in pairs}
    except ValueError:
        raise SettingError(f"--histogram {text!r} cannot be read; write 1=0.1,2=0.2,3=0.7") from None


def _check_truth(given: dict[str, Any]) -> None:
    """Refuse a truth that is too large before the world is made."""
    usual = inspect.signature(simulate.world).parameters
    users, items = (given.get(name, usual[name].default) for name in ("users", "items"))
    check_pairs(users, items)


def _check_kind(kind: str, given: dict[str, Any]) -> None:
    known = {each_kind: {*inspect.signature(function).parameters} for each_kind, function in _KINDS.items()}
    known["world"].add("truth")
    for name in given:
        if name not in known[kind]:
            other = next(each_kind for each_kind in known if name in known[each_kind])
            raise SettingError(
                f"--{name.replace('_', '-')} goes with --kind {other}, not with {kind}; leave it out or change --kind"
            )
