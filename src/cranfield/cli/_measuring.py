"""The options of every command that measures runs on a test set, and the loading of their files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, get_args

import click
import polars as pl

from cranfield import data, measures
from cranfield._errors import SettingError
from cranfield._record import Step
from cranfield.cli._options import (
    Decorator,
    add_options,
    choice_option,
    completed,
    decision_option,
    decision_options,
    refuse_idle,
    runs_named_code,
    strict_option,
)
from cranfield.cli._output import tell
from cranfield.cli._reading import SharedColumns, for_file, reading_options, run_reading_options
from cranfield.data import Ratings, Relevance, read
from cranfield.judgments import NONE, Cataloguing, Context, Judged, NegativeGrades, as_judged, with_live
from cranfield.metrics import at_levels, known_metrics, levels_of
from cranfield.rankings import Ranking, Run, read_runs, read_test
from cranfield.splits import REPEATS, counted_test
from cranfield.tables import spark_session

_WRITTEN = ("quote", "encoding")


@dataclass(frozen=True)
class MeasuringOptions:
    """What is measured against what: the options of `measuring_options`, `engine_options` and others."""

    runs: tuple[str, ...]
    test: str
    threshold: float | str | None
    train: str | None
    test_format: Any
    strict: bool
    reading: Mapping[str, Any]
    run_reading: Mapping[str, Any]
    lists: Any = "full"
    ties: Any = "trec_eval"
    negative_grades: Any = "judged"
    repeats: str | None = None
    validation: str | None = None
    catalogue: str = NONE
    levels: str = "none"
    engine: Any = "memory"
    memory: str | None = None
    master: str | None = None

    def load(self) -> Loaded:
        """Read the files."""

        def read_file(path: str, **reading: Any) -> list[Run]:
            # Where there are several files, one with a single system gives it its name.
            return read_runs(path if len(self.runs) == 1 else [path], **reading)

        def together(files: list[list[Run]]) -> list[Run]:
            return read_runs([run for of_file in files for run in of_file])  # their names must differ

        return self._read(read_file, read_test, together)

    def open(self) -> Loaded:
        """Read the files, or open them if they are read by ranges of users or on Spark."""
        session = None
        if self.engine == "spark":
            refuse_idle("with --engine spark", "memory")
            session = spark_session(self.master)
        else:
            refuse_idle("without --engine spark", "master")
            if not measures.is_large(self.runs, self.test, self.engine, self.memory):
                return self.load()
        open_run = partial(measures.opened_run, among_others=len(self.runs) > 1, session=session)
        return replace(self._read(open_run, partial(measures.opened_test, session=session)), in_parts=True)

    def _read(
        self,
        read_run: Callable[..., Any],
        read_test: Callable[..., Any],
        together: Callable[[list[Any]], list[Any]] = list,
    ) -> Loaded:
        """Read or open the runs (and put those of all files together), the test set and the training set."""
        twice = next((path for path in self.runs if self.runs.count(path) > 1), None)
        if twice is not None:
            raise SettingError(f"{twice} is given twice as a run; give each run once")
        columns = SharedColumns({role: self.reading[role] for role in ("user", "item")})
        of_runs = {**self.run_reading, "ties": self.ties}
        of_ratings = {name: value for name, value in self.reading.items() if name not in ("user", "item", *_WRITTEN)}
        if self.validation is not None and self.train is None:
            raise SettingError("--validation goes with --train; give the training ratings, or leave it out")
        before = [path for path in (self.train, self.validation) if path is not None]
        ratings = [self.test, *before]
        how = {path: self._how(path, of_ratings, ratings) for path in ratings}
        files = Loaded(
            runs=together([columns.read(read_run, path, **self._how(path, of_runs, self.runs)) for path in self.runs]),
            test=columns.read(read_test, self.test, format=self.test_format, **how[self.test]),
            train=None,
            options=self,
        )
        if before:
            parts = data.over_one_vocabulary([columns.read(read, path, **how[path]) for path in before])
            rule = None if parts[0].events is None else "sum/max"
            files = replace(files, train=data.together(parts, rule) if len(parts) > 1 else parts[0])
        columns.check()
        if self.repeats is None:
            return files
        if not isinstance(files.test, Ratings):
            raise SettingError("--repeats needs the whole test set at once; give enough memory for it (--memory)")
        return replace(files, test=counted_test(files.test, files.train, self.repeats))

    @property
    def files(self) -> tuple[str, ...]:
        """All files that are read."""
        return (*self.runs, self.test, *(path for path in (self.train, self.validation) if path is not None))

    @property
    def reading_of_test(self) -> dict[str, Any]:
        """The reading options of the test file, for a column of it that groups users or items."""
        return self._how(self.test, self.reading, [self.test])

    def _how(self, path: str, reading: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
        """Return the reading options of a file: those of all ``files`` of its kind, and those shared by every file."""
        written = {name: self.reading[name] for name in _WRITTEN}
        return {**for_file(path, reading, files), **for_file(path, written, self.files)}


@dataclass(frozen=True)
class Loaded:
    """Runs, a test set and possibly a training set, and the options that say how they are read and measured."""

    runs: list[Any]
    test: Any
    train: Ratings | None
    options: MeasuringOptions
    in_parts: bool = False  # whether they are only opened, and read by ranges of users or on Spark

    def at_levels(self, metrics: Sequence[str]) -> tuple[str, ...]:
        """Return metrics at the requested levels of relevance, and print what these are."""
        if self.options.levels == "none":
            return tuple(metrics)
        judged = self.options.negative_grades == "judged"
        scale = Relevance.of(self.test, train=self.train, negative=judged).scale
        tell([levels_of(scale)])
        return tuple(map(str, at_levels(metrics, scale)))

    @property
    def histories(self) -> list[tuple[str, Sequence[Step]]]:
        """How the files were read, by the name of the system or of the test set."""
        of_runs = [(name, run.history) for run in self.runs for name in (run.systems if self.in_parts else [run.name])]
        return [("the test set was read", self.test.history), *of_runs]

    def measure(self, metrics: Sequence[str], *, bounds: bool = False) -> measures.Scores:
        """Measure the runs."""
        options = self.options
        where = {"engine": options.engine, "memory": options.memory} if self.in_parts else {}
        return measures.measure(
            self.runs, self.test, metrics, threshold=options.threshold, lists=options.lists, train=self.train,
            negative_grades=options.negative_grades, bounds=bounds, strict=options.strict,
            catalogue=options.catalogue, **where,
        )  # fmt: skip

    @property
    def lists(self) -> list[Judged]:
        """The judged lists of the runs; items outside a catalogue earn nothing."""
        how, context = self.options, Context(self.train)
        judged = as_judged(self.runs, self.test, how.threshold, context, negative_grades=how.negative_grades)
        return with_live(judged, how.catalogue, self.train)

    def segments(self, metrics: Sequence[str], by: Sequence[str]) -> list[measures.Segments]:
        """Measure the runs by each of the segments."""
        options = self.options
        return [
            measures.measure_segments(
                self.lists, self.test, metrics, by=segment, threshold=options.threshold, lists=options.lists,
                train=self.train, negative_grades=options.negative_grades, data=options.test,
                reading=options.reading_of_test,
            )
            for segment in measures.Segmenting(by).segment
        ]  # fmt: skip

    def refuse_in_parts(self, options: Mapping[str, Any]) -> None:
        """Refuse options, by name, that are given and need all lists at once, unless the files are read whole."""
        given = [name for name, value in options.items() if value]
        if self.in_parts and given:
            raise SettingError(
                f"{given[0]} needs all lists at once, and these are read in blocks of users; leave it out, or give "
                "enough memory for all of them (--memory)"
            )


# Options.

_MASTER = click.option("--master", metavar="URL", help="With --engine spark: URL of the cluster.  [default: local[*]]")
_ENGINE = (
    click.option(
        "--engine",
        type=click.Choice(get_args(measures.Engine)),
        default="auto",
        help="Where to measure: in memory, in ranges of users (Parquet files only), or on Spark. auto: in memory if "
        "the data fit, else in ranges.",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="The maximum amount of memory to use, such as 2GiB.  [default: 60 % of the free memory]",
    ),
    _MASTER,
)
engine_options: Decorator[Any] = partial(add_options, _ENGINE)
"""Gives a command of `measuring_options` ``--engine``, ``--memory`` and ``--master``."""

threshold_option = decision_option(measures.Measuring.decisions()["threshold"], metavar="R")
_OPTIONS = (
    click.argument("runs", nargs=-1, required=True, metavar="RUN..."),
    click.option("--test", required=True, metavar="FILE", help="The held-out ratings, or TREC qrels."),
    threshold_option,
    decision_option(
        Ranking.decisions()["lists"], help="condensed: remove items without a test rating from the lists first."
    ),
    choice_option("--ties", ["trec_eval", "input", "average"], "How to order items with equal scores."),
    click.option("--train", metavar="FILE", help="The training ratings, for popularity, novelty and checks."),
    click.option("--validation", metavar="FILE", help="With --train: the validation part; users had its items, too."),
    click.option(
        "--repeats",
        type=click.Choice(REPEATS),
        help="Test items that are in their user's training ratings (--train): exclude them, allow both, or only them. "
        "Without it the test set counts as it is.",
    ),
    choice_option(
        "--negative-grades",
        get_args(NegativeGrades),
        "What test grades below 0 mean: judged as not relevant, not judged, or pooled but not judged.",
    ),
    strict_option,
)

LIST_OPTIONS = ("strict", "read_runs")
"""The names of the options of ranked lists that `list_options` adds, in addition to those of ratings."""

levels_option = decision_option(measures.Measuring.decisions()["levels"])
catalogue_option = decision_option(Cataloguing.decisions()["catalogue"], metavar="FILE|train|none")
segment_option = click.option(
    "--segment",
    "by_segment",
    multiple=True,
    metavar="SEGMENT",
    help="Also show results by group: activity (new, light, heavy users), popularity, period, a FILE or "
    "FILE:COLUMN of users or items with their group, or a column of the test file. Repeat for more.",
)


def spark_options(where: str) -> Decorator[Any]:
    """Return a decorator that gives a command ``--engine`` (memory or Spark), with its help, and ``--master``."""
    engine = click.option("--engine", type=click.Choice(["memory", "spark"]), default="memory", help=where)
    return lambda command: engine(_MASTER(command))


def measuring_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command runs, a test set, and the options of measuring; it receives them as one `MeasuringOptions`."""

    @wraps(command)
    def with_measuring(**options: Any) -> Any:
        names = [field.name for field in fields(MeasuringOptions) if field.name in options]
        measuring = MeasuringOptions(**{name: options.pop(name) for name in names})
        _check_outputs(measuring, {name: options[name] for name in _OUTPUTS if options.get(name) is not None})
        return command(measuring=measuring, **options)

    return add_options(_OPTIONS, reading_options(run_reading_options(with_measuring, of_lists=True), of_test=True))


def list_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that may read ranked lists the options for their files.

    It receives ``load``, which takes the runs, the test file, the training file or None, and the threshold, and returns
    their contents; and the dictionary ``reading``, for other files of ratings.
    """

    @wraps(command)
    def with_files(**options: Any) -> Any:
        how = {name: options.pop(name) for name in ("test_format", "strict", "run_reading")}

        def load(runs: tuple[str, ...], test: str, train: str | None, threshold: Any) -> Loaded:
            return MeasuringOptions(runs, test, threshold, train, reading=options["reading"], **how).load()

        return command(load=load, **options)

    return strict_option(reading_options(run_reading_options(with_files, of_lists=True), of_test=True))


_OUTPUTS = ("out", "per_user", "migration", "report")


def _check_outputs(measuring: MeasuringOptions, outputs: Mapping[str, str]) -> None:
    """Refuse to overwrite the input, or to write two outputs to one file, before any work is lost."""
    taken = {Path(file).resolve() for file in measuring.files}
    for name, path in outputs.items():
        option = "--" + name.replace("_", "-")
        if Path(path).is_dir() and name != "out":
            raise SettingError(f"{option} {path} is a folder; name a file")
        if Path(path).exists() and not Path(path).is_file():
            continue  # a folder or a terminal
        if Path(path).resolve() in taken:
            raise SettingError(f"{option} {path} would replace a file that is also read or written; choose another")
        taken.add(Path(path).resolve())


def metric_option(default: tuple[str, ...]) -> Decorator[Any]:
    """Return the option ``-m``, which may be repeated; code that it names may be run."""
    option = click.option(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        default=default,
        metavar="METRIC",
        help="A metric, such as P@10, 'nDCG(gain=exp)@100' or my_module:my_metric@10. Repeat for more.",
        **completed(known_metrics),
    )
    return lambda command: option(runs_named_code("metrics")(command))


def averaging_options(average: str) -> Decorator[Any]:
    """Give a command the options for averaging lists, with its own help for ``--average``."""
    by = click.option(
        "--by",
        type=click.Choice(("list", "user")),
        default=measures.Averaging.by,
        help="Average over lists, or over users after averaging each user's lists.",
    )
    coverage = "Count users without a list as 0, or average only over users that every system serves."
    options = decision_options(
        measures.Averaging, average={"metavar": "AVERAGE", "help": average}, coverage={"help": coverage}
    )
    return lambda command: options(by(command))


def with_groups(whole: pl.DataFrame, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows over all, followed by those of groups, which name their segment and group."""
    if not parts:
        return whole
    labels = [pl.lit(None, dtype=pl.String).alias(name) for name in ("segment", "group")]
    return pl.concat([whole.select(*labels, pl.all()), *parts], how="diagonal_relaxed")
