"""The options of every command that measures runs on a test set, and the loading of their files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from cranfield._errors import SettingError
from cranfield._files import meant
from cranfield._settings import settings
from cranfield.cli._decisions import decision_option, decision_options
from cranfield.cli._given import refuse_idle
from cranfield.cli._output import say_line
from cranfield.cli._own_code import runs_named_code
from cranfield.cli._reading import (
    RUN_READING_OPTIONS,
    SharedColumns,
    for_file,
    reading_options,
    run_reading_options,
)
from cranfield.judgments import NONE, Cataloguing, NegativeGrades
from cranfield.measures import Averaging, By, Engine, Kind, Measuring

if TYPE_CHECKING:
    from cranfield._record import Step
    from cranfield.data import Ratings
    from cranfield.judgments import Judged
    from cranfield.measures import Scores
    from cranfield.rankings import HeldOutTable, Run, RunTables

Command = TypeVar("Command", bound=Callable[..., Any])

TEST_SET = "the test set was read"


@dataclass(frozen=True)
class MeasuringOptions:
    """What is measured against what: the options of `measuring_options`."""

    runs: tuple[str, ...]
    test: str
    threshold: float | str | None
    lists: Any
    ties: Any
    train: str | None
    run_format: str | None
    test_format: Any
    negative_grades: Any
    tag: bool
    strict: bool
    reading: Mapping[str, Any]
    run_reading: Mapping[str, Any]
    catalogue: str = NONE

    def load(self) -> Loaded:
        """Read the files."""
        from cranfield.data import read
        from cranfield.rankings import read_test

        columns, ratings = self._columns, self._how_ratings
        loaded = Loaded(
            runs=self._read_runs(columns),
            test=columns.read(read_test, self.test, format=self.test_format, **ratings[self.test]),
            train=None if self.train is None else columns.read(read, self.train, **ratings[self.train]),
            options=self,
        )
        columns.check()
        return loaded

    def open(self, engine: str, memory: str | None, master: str | None = None) -> Loaded | OpenedTables:
        """Read the files, or open them if they are read by ranges of users or on Spark."""
        from cranfield.data import read
        from cranfield.measures import is_large, parquet_path
        from cranfield.rankings import HeldOutTable, RunTables, read_test

        if engine == "spark":
            refuse_idle("with --engine spark", "memory")
            return self._opened_on_spark(master)
        refuse_idle("without --engine spark", "master")
        if not is_large(self.runs, self.test, engine, memory):
            return self.load()
        columns, ratings, several = self._columns, self._how_ratings, len(self.runs) > 1
        path, test = parquet_path(self.test), ratings[self.test]
        opened = OpenedTables(
            runs=[
                columns.read(RunTables.opened, meant(run), among_others=several, **self._how_run(run))
                for run in self._runs
            ],
            test=columns.read(read_test, self.test, format=self.test_format, **test)
            if path is None
            else columns.read(HeldOutTable.opened, path, format=self.test_format, **test),
            train=None if self.train is None else columns.read(read, self.train, **ratings[self.train]),
            options=self,
            memory=memory,
        )
        columns.check()
        return opened

    def _opened_on_spark(self, master: str | None) -> OpenedTables:
        """Open files with Spark; it gets the paths unchanged, because it supports more file systems."""
        from cranfield.data import read
        from cranfield.measures import opened_run, opened_test
        from cranfield.tables import spark_session

        session = spark_session(master)
        columns, ratings, several = self._columns, self._how_ratings, len(self.runs) > 1
        opened = OpenedTables(
            runs=[
                columns.read(opened_run, run, session=session, among_others=several, **self._how_run(run))
                for run in self._runs
            ],
            test=columns.read(opened_test, self.test, session=session, format=self.test_format, **ratings[self.test]),
            train=None if self.train is None else columns.read(read, self.train, **ratings[self.train]),
            options=self,
            memory=None,
        )
        columns.check()
        return opened

    @property
    def _columns(self) -> SharedColumns:
        return SharedColumns({role: self.reading[role] for role in ("user", "item")})

    @property
    def _how_ratings(self) -> dict[str, dict[str, Any]]:
        """The reading options of each file of ratings."""
        reading = {name: value for name, value in self.reading.items() if name not in ("user", "item", *_WRITTEN)}
        files = [self.test, *([] if self.train is None else [self.train])]
        return {path: self._how(path, reading, files) for path in files}

    @property
    def reading_of_test(self) -> dict[str, Any]:
        """The reading options of the test file, for a column of it that groups users or items."""
        return self._how(self.test, self.reading, [self.test])

    def _read_runs(self, columns: SharedColumns) -> list[Run]:
        from cranfield.rankings import check_names

        reader = _read_one_file if len(self.runs) == 1 else _read_among_others
        runs = [columns.read(reader, path, **self._how_run(path)) for path in self._runs]
        return check_names([run for of_file in runs for run in of_file])

    @property
    def _runs(self) -> tuple[str, ...]:
        twice = next((path for path in self.runs if self.runs.count(path) > 1), None)
        if twice is not None:
            raise SettingError(f"{twice} is given twice as a run; give each run once")
        return self.runs

    def _how_run(self, path: str) -> dict[str, Any]:
        """Return the reading options of a run's file."""
        reading = {**self.run_reading, "ties": self.ties, "format": self.run_format, "tag": self.tag}
        return self._how(path, reading, self.runs)

    def _how(self, path: str, reading: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
        """Return the reading options of a file: those of all ``files`` of its kind, and those shared by every file."""
        every = (*self.runs, self.test, *([] if self.train is None else [self.train]))
        written = {name: self.reading[name] for name in _WRITTEN}
        return {**for_file(path, reading, files), **for_file(path, written, every)}


_WRITTEN = ("quote", "encoding")


def _read_one_file(path: Any, **reading: Any) -> list[Run]:
    from cranfield.rankings import read_runs

    return read_runs(path, **reading)


def _read_among_others(path: str, **reading: Any) -> list[Run]:
    """Read the runs of one of several files; a file with a single system gives it its name."""
    return _read_one_file([path], **reading)


@dataclass(frozen=True)
class Loaded:
    """Runs, a test set and possibly a training set, as read, and the options they were read with."""

    runs: list[Run]
    test: Ratings
    train: Ratings | None
    options: MeasuringOptions

    def at_levels(self, metrics: Sequence[str], levels: str) -> tuple[str, ...]:
        """Return metrics at the requested levels of relevance, and print what these are."""
        return _at_levels(metrics, levels, self)

    def measure(self, metrics: Sequence[str], *, bounds: bool = False) -> Scores:
        """Measure the runs."""
        from cranfield.measures import measure

        return measure(
            self.runs, self.test, metrics, threshold=self.options.threshold, lists=self.options.lists,
            train=self.train, negative_grades=self.options.negative_grades, bounds=bounds, strict=self.options.strict,
            catalogue=self.options.catalogue,
        )  # fmt: skip

    @property
    def lists(self) -> list[Judged]:
        """The judged lists of the runs; items outside a catalogue earn nothing."""
        from cranfield.judgments import Context, with_live
        from cranfield.measures import as_judged

        how, context = self.options, Context(self.train)
        judged = as_judged(self.runs, self.test, how.threshold, context, negative_grades=how.negative_grades)
        return with_live(judged, how.catalogue, self.train)

    @property
    def histories(self) -> list[tuple[str, Sequence[Step]]]:
        """How the files were read, by the name of the system or of the test set."""
        return [(TEST_SET, self.test.history), *((run.name, run.history) for run in self.runs)]


@dataclass(frozen=True)
class OpenedTables:
    """Runs and a test set that are read by ranges of users, possibly a training set, and their options."""

    runs: list[RunTables]
    test: HeldOutTable | Ratings
    train: Ratings | None
    options: MeasuringOptions
    memory: str | None

    def at_levels(self, metrics: Sequence[str], levels: str) -> tuple[str, ...]:
        """Return metrics at the requested levels of relevance, and print what these are."""
        return _at_levels(metrics, levels, self)

    def measure(self, metrics: Sequence[str], *, bounds: bool = False) -> Scores:
        """Measure the runs."""
        from cranfield.measures import measure_tables, part_plan

        options = self.options
        measuring = Measuring(metrics=metrics, threshold=options.threshold, lists=options.lists)
        how: dict[str, Any] = {
            "train": self.train, "negative_grades": options.negative_grades, "bounds": bounds,
            "strict": options.strict, "catalogue": options.catalogue,
        }  # fmt: skip
        if self.on_spark:
            from cranfield.measures import measure_tables_on_spark

            runs: Any = self.runs
            test: Any = self.test
            return measure_tables_on_spark(runs, test, part_plan(runs, test, measuring, **how)).scores
        return measure_tables(self.runs, self.test, measuring, **how, memory=self.memory).scores

    @property
    def on_spark(self) -> bool:
        """Whether they are measured on Spark."""
        return any(not tables.table.has_places for tables in self.runs)

    @property
    def histories(self) -> list[tuple[str, Sequence[Step]]]:
        """How the files were read, by the name of the system or of the test set."""
        return [
            (TEST_SET, self.test.history),
            *((name, tables.history) for tables in self.runs for name in tables.systems),
        ]


def _at_levels(metrics: Sequence[str], levels: str, loaded: Loaded | OpenedTables) -> tuple[str, ...]:
    if levels == "none":
        return tuple(metrics)
    from cranfield.data import Relevance
    from cranfield.metrics import at_levels, levels_note

    judged = loaded.options.negative_grades == "judged"
    scale = Relevance.of(loaded.test, train=loaded.train, negative=judged).scale
    tell([levels_note(scale)])
    return tuple(map(str, at_levels(metrics, scale)))


def refuse_for_ranges(loaded: Loaded | OpenedTables, options: Sequence[str]) -> None:
    """Refuse options that need all lists at once if they are read by ranges of users."""
    if isinstance(loaded, OpenedTables) and options:
        raise SettingError(
            f"{options[0]} needs all lists at once, and these are read by ranges of users; leave it out, or give more "
            "memory (--engine memory reads all of them, whatever their size)"
        )


def all_at_once(loaded: Loaded | OpenedTables) -> Loaded:
    """Return the files as read whole; `refuse_for_ranges` has made sure that they are."""
    assert isinstance(loaded, Loaded)
    return loaded


_master_option = click.option(
    "--master", metavar="URL", help="With --engine spark: URL of the cluster.  [default: local[*]]"
)


def engine_options(command: Command) -> Command:
    """Give a command ``--engine``, ``--memory`` and ``--master``."""
    engine = click.option(
        "--engine",
        type=click.Choice(get_args(Engine)),
        default="auto",
        show_default=True,
        help="Where to measure: in memory, in ranges of users (Parquet files only), or on Spark. auto: in memory if "
        "the data fit, else in ranges.",
    )
    memory = click.option(
        "--memory",
        metavar="SIZE",
        help="The maximum amount of memory to use, such as 2GiB.  [default: 60 % of the free memory]",
    )
    return engine(memory(_master_option(command)))


def spark_options(where: str) -> Callable[[Command], Command]:
    """Return a decorator that gives a command ``--engine`` (memory or Spark), with its help, and ``--master``."""
    engine = click.option(
        "--engine", type=click.Choice(["memory", "spark"]), default="memory", show_default=True, help=where
    )
    return lambda command: engine(_master_option(command))


negative_grades_option = click.option(
    "--negative-grades",
    type=click.Choice(get_args(NegativeGrades)),
    default="judged",
    show_default=True,
    help="What test grades below 0 mean: judged as not relevant, not judged, or pooled but not judged.",
)

catalogue_option = decision_option(Cataloguing.decisions()["catalogue"], metavar="FILE|train|none")

_OF_FILES = (
    click.option("--run-format", metavar="NAME", help="The format of the runs.  [default: detected]"),
    click.option(
        "--test-format",
        type=click.Choice(["ratings", "qrels"]),
        help="The format of the test file.  [default: detected]",
    ),
    click.option("--tag", is_flag=True, help="Name systems after the tag in their TREC run instead of the file."),
    click.option("--strict", is_flag=True, help="Turn warnings about likely mistakes in the inputs into errors."),
)

LIST_OPTIONS = ("run_format", "test_format", "tag", "strict", *RUN_READING_OPTIONS)
"""The names of the options of ranked lists that `list_options` adds, in addition to those of ratings."""


def list_options(without: Collection[str] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command that may read ranked lists the options for their files.

    It receives ``load``, which takes the runs, the test file, the training file or None, and the threshold, and returns
    their contents; and the dictionary ``reading``, for other files of ratings.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_files(**options: Any) -> Any:
            how = {name: options.pop(name) for name in ("run_format", "test_format", "tag", "strict", "run_reading")}
            usual: dict[str, Any] = {"lists": "full", "ties": "trec_eval", "negative_grades": "judged"}

            def load(runs: tuple[str, ...], test: str, train: str | None, threshold: Any) -> Loaded:
                files: dict[str, Any] = {"runs": runs, "test": test, "train": train, "threshold": threshold}
                return MeasuringOptions(**usual, **how, reading=options["reading"], **files).load()

            return command(load=load, **options)

        decorated = reading_options(run_reading_options(with_files, without=without))
        for option in reversed(_OF_FILES):
            decorated = option(decorated)
        return decorated

    return add


_OPTIONS = (
    click.argument("runs", nargs=-1, required=True, metavar="RUN..."),
    click.option("--test", required=True, metavar="FILE", help="The held-out ratings, or TREC qrels."),
    decision_option(Measuring.decisions()["threshold"], metavar="R"),
    click.option(
        "--lists",
        type=click.Choice(get_args(Kind)),
        default="full",
        show_default=True,
        help="condensed: remove items without a test rating from the lists first.",
    ),
    click.option(
        "--ties",
        type=click.Choice(["trec_eval", "input", "average"]),
        default="trec_eval",
        show_default=True,
        help="How to order items with equal scores.",
    ),
    click.option("--train", metavar="FILE", help="The training ratings, for popularity, novelty and checks."),
    negative_grades_option,
    *_OF_FILES,
)


def measuring_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command runs, a test set, and the options of measuring; it receives them as one `MeasuringOptions`."""

    @wraps(command)
    def with_measuring(**options: Any) -> Any:
        names = [field.name for field in fields(MeasuringOptions) if field.name in options]
        measuring = MeasuringOptions(**{name: options.pop(name) for name in names})
        _check_outputs(measuring, {name: options[name] for name in _OUTPUTS if options.get(name) is not None})
        return command(measuring=measuring, **options)

    decorated = reading_options(run_reading_options(with_measuring))
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


levels_option = decision_option(Measuring.decisions()["levels"], option="relevance-levels")

_OUTPUTS = ("out", "per_user", "migration", "report")


def _check_outputs(measuring: MeasuringOptions, outputs: Mapping[str, str]) -> None:
    """Refuse to overwrite the input, or to write two outputs to one file, before any work is lost."""
    taken = {Path(file).resolve() for file in (*measuring.runs, measuring.test, measuring.train) if file is not None}
    for name, path in outputs.items():
        option = "--" + name.replace("_", "-")
        if Path(path).is_dir() and name != "out":
            raise SettingError(f"{option} {path} is a folder; name a file")
        if Path(path).exists() and not Path(path).is_file():
            continue  # a folder or a terminal
        if Path(path).resolve() in taken:
            raise SettingError(f"{option} {path} would replace a file that is also read or written; choose another")
        taken.add(Path(path).resolve())


def tell(notes: Iterable[str]) -> None:
    """Print notes on standard error; with ``--quiet`` only warnings."""
    for note in notes:
        if not settings.quiet or note.startswith("Warning: "):
            say_line(f"· {note}", err=True)


def tell_of_grades(loaded: Loaded, metrics: Sequence[str]) -> None:
    """Print notes about the scale of the test set, for output that has no room for them."""
    from cranfield.metrics import as_metrics, notes_on_grades

    tell(notes_on_grades(loaded.test, as_metrics(metrics), loaded.options.negative_grades))


def metric_option(default: tuple[str, ...]) -> Callable[[Command], Command]:
    """Return the option ``-m``, which may be repeated; code that it names may be run."""
    option = click.option(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        default=default,
        show_default=True,
        metavar="METRIC",
        help="A metric, such as P@10, 'nDCG(gain=exp)@100' or my_module:my_metric@10. Repeat for more.",
    )

    def add(command: Command) -> Command:
        return option(runs_named_code("metrics")(command))

    return add


def averaging_options(average: str, coverage: str) -> Callable[[Command], Command]:
    """Give a command the options for averaging lists, with its own help for ``--average`` and ``--coverage``."""

    def add(command: Command) -> Command:
        command = click.option(
            "--by",
            type=click.Choice(get_args(By)),
            default=Averaging.by,
            show_default=True,
            help="Average over lists, or over users after averaging each user's lists.",
        )(command)
        return decision_options(
            Averaging, average={"metavar": "AVERAGE", "help": average}, coverage={"help": coverage}
        )(command)

    return add
