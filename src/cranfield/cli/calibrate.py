"""``cranfield calibrate``: turn the scores of ranked lists into predicted ratings."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import click

from cranfield._errors import CranfieldWarning, SettingError
from cranfield._record import record
from cranfield._settings import settings
from cranfield.cli._group import process_options
from cranfield.cli._output import say_line
from cranfield.cli._reading import for_file, reading_options, run_reading_options
from cranfield.data import read
from cranfield.judgments import Context, check_inputs
from cranfield.measures import as_judged
from cranfield.rankings import CALIBRATIONS, calibrate, read_run, write_run

_EXAMPLES = """\b
Examples:
  cranfield calibrate mine.csv --by mine-on-validation.csv --validation validation.csv --out calibrated.parquet
  cranfield evaluate --test test.csv calibrated.parquet -m SDCSE@10 -m RMSE@10 -m ECE@10
"""


@click.command(epilog=_EXAMPLES)
@click.argument("run", metavar="RUN")
@click.option(
    "--by",
    required=True,
    metavar="RUN",
    help="Lists of the same system, trained without the validation ratings, with the items of these ratings.",
)
@click.option(
    "--validation",
    required=True,
    metavar="FILE",
    help="Ratings that the system was not trained on; not the test ratings.",
)
@click.option(
    "--method", type=click.Choice(list(CALIBRATIONS)), default="isotonic", show_default=True, help="The kind of map."
)
@click.option("--out", required=True, metavar="FILE", help="The lists with a column prediction (Parquet, CSV or TSV).")
@click.option("--strict", is_flag=True, help="Turn warnings about likely mistakes in the inputs into errors.")
@reading_options
@run_reading_options
@process_options
def command(
    run: str,
    by: str,
    validation: str,
    method: str,
    out: str,
    strict: bool,
    reading: dict[str, Any],
    run_reading: dict[str, Any],
) -> None:
    """Turn the scores of ranked lists into predicted ratings, with a map fitted on held-out ratings.

    The map never decreases, so the lists keep their order.
    """
    if Path(out).suffix.lower() not in (".parquet", ".csv", ".tsv"):
        raise SettingError(f"--out {out} cannot hold a column of predictions; name it .parquet, .csv or .tsv")
    if Path(out).resolve() in (Path(path).resolve() for path in (run, by, validation)):
        raise SettingError(f"--out {out} would replace a file that is read; choose another")
    ratings = read(validation, **for_file(validation, reading, [validation]))
    layout = {name: value for name, value in run_reading.items() if name != "system"}
    lists, held_out = (read_run(path, **for_file(path, layout, [run, by])) for path in (run, by))
    for warning in check_inputs(as_judged([held_out], ratings, None, Context()), ratings, strict=strict):
        warnings.warn(warning, CranfieldWarning, stacklevel=1)
    calibrated = calibrate(lists, held_out, ratings, method)
    assert calibrated.calibration is not None
    path = write_run(calibrated, out)
    record(path, {"calibrated": calibrated.calibration.as_dict()})
    if not settings.quiet:
        fitted = calibrated.calibration
        say_line(
            f"{path}: {method} calibration on {fitted.pairs:,} ratings, spread of the residuals {fitted.spread:.3g}"
        )
