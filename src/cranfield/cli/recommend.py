"""``cranfield recommend`` and ``calibrate``: train systems and write their lists; turn scores into predictions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from cranfield import rankings
from cranfield._errors import CranfieldWarning, SettingError
from cranfield._record import record
from cranfield.cli._measuring import spark_options, threshold_option
from cranfield.cli._options import (
    HelpfulCommand,
    choice_option,
    common_options,
    decision_options,
    jobs_option,
    overlap_option,
    process_options,
    refuse_idle,
    resumes,
    runs_named_code,
    strict_option,
    systems_option,
)
from cranfield.cli._output import inform, make_folder, put_on_spark, refuse_file
from cranfield.cli._reading import Keywords, for_file, reading_options, run_reading_options
from cranfield.data import Ratings, over_one_vocabulary, read, together, with_features
from cranfield.judgments import Context, as_judged, check_inputs
from cranfield.recommenders import SYSTEMS
from cranfield.splits import Split, predefined, read_item_groups
from cranfield.tables import FORMATS, SparkTable, spark_session

_FORMATS = ["parquet", "tsv", "csv", "trec"]

_EPILOG = "\b\nSystems:\n" + "\n".join(f"  {line}" for line in SYSTEMS.signatures())
_EPILOG += """

\b
Examples:
  cranfield recommend --train train.csv -s popularity -s 'knn(k=50)' --out runs
  cranfield recommend --train train.csv -s knn --fill popularity --min-ratings 5 --out runs --format tsv
  cranfield recommend --train train.csv --test test.csv -s slim --candidates test --out runs
  cranfield recommend --train train.csv --test test.csv -s slim --relevant one --nonrelevant 99 --threshold 4 --out r
  cranfield recommend --train p/train.parquet --test p/test.parquet --item-groups p/groups.parquet -s slim \
--relevant one --candidates group --nonrelevant 99 --threshold 4 --out r
  cranfield recommend --engine spark --train s3a://lake/train -s 'spark-als(factors=64)' --out s3a://lake/runs
  cranfield evaluate --test test.csv runs/*.parquet -m nDCG@10 --threshold 4
"""


@click.command(cls=HelpfulCommand, epilog=_EPILOG)
@click.option("--train", required=True, metavar="FILE", help="The training ratings.")
@click.option("--test", metavar="FILE", help="The held-out ratings, for options that need them.")
@click.option(
    "--validation",
    metavar="FILE",
    help="The validation part of the split: it stops systems that learn in epochs, all are then trained on both parts, "
    "and its items are not recommended.",
)
@click.option(
    "--profiles",
    metavar="FILE",
    help="The profiles of held-out users, as written by split --method strong_generalisation; lists are made for "
    "these users.",
)
@systems_option("A system, as listed below, or my_module:MyClass(k=5). Repeat for more.")
@click.option("--out", required=True, metavar="FOLDER", help="The folder to write to, one file per system.")
@choice_option("--format", _FORMATS, "The file format.")
@click.option(
    "--resume",
    is_flag=True,
    help="Keep existing files that were made with the same inputs and options; make the others.",
)
@spark_options(
    "Where to train and rank: in memory, or on Spark (spark-als only; --train is Parquet that Spark can read)."
)
@decision_options(rankings.Serving)
@decision_options(rankings.Ranking, fill={"metavar": "SYSTEM"})
@click.option(
    "--item-groups",
    metavar="FILE",
    help="The popularity group of each item: groups.parquet, as written by split --method percentiles.",
)
@click.option(
    "--features",
    type=Keywords({about: (str, f"a table of {about} features") for about in ("user", "item")}),
    default={},
    show_default=False,
    metavar="SCHEMA",
    help="Tables of features, for systems that use them: 'user=FILE, item=FILE'.",
)
@threshold_option
@overlap_option
@jobs_option
@reading_options
@common_options
@resumes("finished files are kept; run the same command with --resume to continue")
@runs_named_code("systems")
def recommend_command(
    train: str,
    test: str | None,
    validation: str | None,
    profiles: str | None,
    systems: tuple[str, ...],
    out: str,
    format: str,
    resume: bool,
    overlap: str | None,
    item_groups: str | None,
    features: Mapping[str, str],
    engine: str,
    master: str | None,
    reading: dict[str, Any],
    **decisions: Any,
) -> None:
    """Train systems and write their ranked lists, one file per system."""
    if not systems:
        raise SettingError("no system is given; name at least one, such as -s popularity")
    if engine == "spark":
        refuse_idle(
            "with --engine spark", "test", "validation", "profiles", "format", "resume", "item_groups", "features"
        )
        refuse_idle("with --engine spark", "threshold", "overlap", "jobs")
        _recommend_on_spark(train, systems, out, master, for_file(train, reading, [train]), decisions)
        return
    refuse_idle("without --engine spark", "master")
    refuse_file(out)
    files = {name: Path(out) / f"{stem}.{format}" for name, stem in rankings.file_name(systems).items()}
    if test is None and overlap is not None:
        raise SettingError("--overlap goes with --test; leave it out, or give the test set")
    if profiles is not None and test is None:
        raise SettingError("--profiles goes with --test; give the test set of the same split")
    if test is None:
        refuse_idle("without --test, which contains the new users", "new_users")
    if decisions["relevant"] == "all":
        refuse_idle("without --relevant one", "item_groups")
    if decisions["candidates"] == "group" and item_groups is None:
        raise SettingError("--candidates group needs the popularity groups of the items; give --item-groups FILE")
    if decisions["relevant"] == "all" and decisions["nonrelevant"] == "all":
        refuse_idle("without --relevant one or --nonrelevant", "threshold")
    sources = [path for path in (train, test, validation, profiles) if path is not None]
    for path in files.values():
        if path.resolve() in (Path(source).resolve() for source in sources):
            raise SettingError(f"{path} is one of the input files; choose another folder with --out")
    parts = {path: read(path, **for_file(path, reading, sources)) for path in sources}
    parts[train] = with_features(parts[train], features.get("user"), features.get("item"))
    data: Ratings | Split = parts[train]
    if validation is None:
        _tell_of_validation(Path(train))
    elif test is None:
        rule = "sum/max" if parts[train].events is not None else None
        data = together(over_one_vocabulary([parts[train], parts[validation]]), rule)
    if test is not None:
        others = {"validation": validation, "profiles": profiles}
        given = {name: parts[path] for name, path in others.items() if path is not None}
        data = predefined(parts[train], parts[test], **given, overlap=overlap or "error")  # type: ignore[arg-type]
        if item_groups is not None:
            data = replace(data, item_groups=read_item_groups(item_groups, data.train.item_ids))
    lists = rankings.recommend_to_files(data, files, resume=resume, **decisions)
    make_folder(out)
    kept = len(files)
    for path, run, remark in lists:
        inform(f"{path}: {_counts(run)}{remark}")
        kept -= 1
    if kept:
        inform(f"{kept} of {len(files)} runs already existed and were kept")


def _tell_of_validation(train: Path) -> None:
    """Say that the validation part of the same split is not used, if there is one beside the training part."""
    beside = [train.with_name(f"validation.{ending}") for ending in FORMATS]
    there = next((path for path in beside if path.is_file() and train.stem == "train"), None)
    if there is not None:
        inform(
            f"note: {there} is not used, so that its items may be recommended; give it with --validation to train on "
            "both parts and leave its items out",
            err=True,
        )


def _recommend_on_spark(
    train: str, systems: Sequence[str], out: str, master: str | None, reading: dict[str, Any], decisions: dict[str, Any]
) -> None:
    """Let Spark train, rank and write the lists of each system, as a folder of Parquet files."""
    seed = decisions.pop("seed")
    serving, ranking = rankings.decided({name: value for name, value in decisions.items() if name != "jobs"})
    columns = {role: reading[role] for role in ("user", "item", "rating", "time")}
    ratings = SparkTable.read(train, spark_session(master)).frame
    for name, stem in rankings.file_name(systems).items():
        path = f"{out.rstrip('/')}/{stem}.parquet"
        lists = rankings.recommend_on_spark(ratings, name, serving, ranking, seed=seed, label=train, **columns)
        put_on_spark(lists, path)
        inform(path)


def _counts(run: rankings.Run) -> str:
    """Return the numbers of users with lists and of items; of lists if a user has several; of users without a list."""
    users, empty = len(np.unique(run.users)), run.counts.get("empty_lists", 0)
    lists = "" if users == len(run) else f"{len(run):,} lists for "
    return f"{lists}{users:,} users, {len(run.items):,} items" + (f", {empty:,} users without a list" if empty else "")


_CALIBRATION = """\b
Examples:
  cranfield calibrate mine.csv --by mine-on-validation.csv --validation validation.csv --out calibrated.parquet
  cranfield evaluate --test test.csv calibrated.parquet -m SDCSE@10 -m RMSE@10 -m ECE@10
"""


@click.command(cls=HelpfulCommand, epilog=_CALIBRATION)
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
@click.option("--method", type=click.Choice(list(rankings.CALIBRATIONS)), default="isotonic", help="The kind of map.")
@click.option("--out", required=True, metavar="FILE", help="The lists with a column prediction (Parquet, CSV or TSV).")
@strict_option
@reading_options
@run_reading_options
@process_options
def calibrate_command(
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
    lists, held_out = (rankings.read_run(path, **for_file(path, layout, [run, by])) for path in (run, by))
    for warning in check_inputs(as_judged([held_out], ratings, None, Context()), ratings, strict=strict):
        warnings.warn(str(warning), CranfieldWarning, stacklevel=1)
    calibrated = rankings.calibrate(lists, held_out, ratings, method)
    fitted = calibrated.calibration
    assert fitted is not None
    path = rankings.write_run(calibrated, out)
    record(path, {"calibrated": fitted.as_dict()})
    inform(f"{path}: {method} calibration on {fitted.pairs:,} ratings, spread of the residuals {fitted.spread:.3g}")
