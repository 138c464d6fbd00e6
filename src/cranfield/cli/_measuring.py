"""The options of every command that meets runs with a test set, and the loading they ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from cranfield._errors import SettingError
from cranfield._settings import settings
from cranfield.cli._decisions import decision_options
from cranfield.cli._group import unpack_option
from cranfield.cli._output import say_line
from cranfield.cli._own_code import runs_named_code
from cranfield.cli._reading import repeated_option
from cranfield.cli._renamed import renamed_option
from cranfield.measures.averaging import Averaging, By
from cranfield.measures.judgments import NegativeGrades
from cranfield.measures.measuring import Kind

if TYPE_CHECKING:
    from cranfield.data import Ratings
    from cranfield.measures import Scores
    from cranfield.rankings import Run

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class MeasuringOptions:
    """What is to be measured against what: the options that `measuring_options` gives."""

    runs: tuple[str, ...]
    test: str
    threshold: float | None
    lists: Any
    ties: Any
    train: str | None
    run_format: str | None
    test_format: Any
    repeated: str
    negative_grades: Any
    tag: bool

    def load(self) -> Loaded:
        """Read the files."""
        from cranfield.data import read
        from cranfield.rankings import read_runs, read_test

        several = self.runs if len(self.runs) > 1 else self.runs[0]
        return Loaded(
            runs=read_runs(several, ties=self.ties, format=self.run_format, tag=self.tag),
            test=read_test(self.test, format=self.test_format, repeated=self.repeated),
            train=None if self.train is None else read(self.train),
            options=self,
        )


@dataclass(frozen=True)
class Loaded:
    """Runs, test set and perhaps training set, as read, and the options they were read with."""

    runs: list[Run]
    test: Ratings
    train: Ratings | None
    options: MeasuringOptions

    def measure(self, metrics: Sequence[str], *, bounds: bool = False) -> Scores:
        """Measure the runs."""
        from cranfield.measures import measure

        return measure(
            self.runs, self.test, metrics, threshold=self.options.threshold, lists=self.options.lists,
            train=self.train, negative_grades=self.options.negative_grades, bounds=bounds,
        )  # fmt: skip


negative_grades_option = click.option(
    "--negative-grades",
    type=click.Choice(get_args(NegativeGrades)),
    default="judged",
    show_default=True,
    help="What test grades below 0 mean: judged and not relevant, not judged, or pooled and not judged.",
)

_OPTIONS = (
    click.argument("runs", nargs=-1, required=True, metavar="RUN..."),
    click.option("--test", required=True, metavar="FILE", help="The held-out ratings, or TREC qrels."),
    click.option("--threshold", type=float, metavar="R", help="The lowest rating that makes an item relevant."),
    click.option(
        "--lists",
        type=click.Choice(get_args(Kind)),
        default="full",
        show_default=True,
        help="Condensed: take items without a test rating out of the lists first.",
    ),
    renamed_option("--condensed", "--lists condensed", is_flag=True),
    click.option(
        "--ties",
        type=click.Choice(["trec_eval", "input", "average"]),
        default="trec_eval",
        show_default=True,
        help="How items of equal score are ordered.",
    ),
    click.option("--train", metavar="FILE", help="The training ratings: the catalogue, popularity and novelty."),
    click.option("--run-format", metavar="NAME", help="The layout of the runs.  [default: detected]"),
    click.option(
        "--test-format", type=click.Choice(["ratings", "qrels"]), help="What the test file holds.  [default: detected]"
    ),
    repeated_option,
    negative_grades_option,
    click.option("--tag", is_flag=True, help="Name systems by the tag of their TREC run, not by their file."),
)


def measuring_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command runs, a test set, and how they are to be met; it receives them as one `MeasuringOptions`."""

    @wraps(command)
    def with_measuring(**options: Any) -> Any:
        measuring = MeasuringOptions(**{field.name: options.pop(field.name) for field in fields(MeasuringOptions)})
        _check_outputs(measuring, {name: options[name] for name in _OUTPUTS if options.get(name) is not None})
        return command(measuring=measuring, **options)

    with_measuring = unpack_option(with_measuring)
    for option in reversed(_OPTIONS):
        with_measuring = option(with_measuring)
    return with_measuring


_OUTPUTS = ("out", "per_user", "report")


def _check_outputs(measuring: MeasuringOptions, outputs: Mapping[str, str]) -> None:
    """Refuse, before there is any work to lose, to write where the input is or twice to one file."""
    taken = {Path(one).resolve() for one in (*measuring.runs, measuring.test, measuring.train) if one is not None}
    for name, path in outputs.items():
        option = "--" + name.replace("_", "-")
        if Path(path).is_dir() and name != "out":
            raise SettingError(f"{option} {path} is a folder; name a file")
        if Path(path).exists() and not Path(path).is_file():
            continue  # a folder, a terminal
        if Path(path).resolve() in taken:
            raise SettingError(f"{option} {path} would replace a file that is read, or written as well; choose another")
        taken.add(Path(path).resolve())


def tell(notes: Iterable[str]) -> None:
    """Write notes beside the output, unless nothing is to be said."""
    if not settings.quiet:
        for note in notes:
            say_line(f"· {note}", err=True)


def tell_of_grades(loaded: Loaded, metrics: Sequence[str]) -> None:
    """Tell what a reader should know of the scale of the test set, where the output has no room for it."""
    from cranfield.measures.inputs import as_metrics
    from cranfield.measures.notes import notes_on_grades

    tell(notes_on_grades(loaded.test, as_metrics(metrics), loaded.options.negative_grades))


def metric_option(default: tuple[str, ...]) -> Callable[[Command], Command]:
    """Return the option ``-m``, that may be given several times; code that it names may be run."""
    option = click.option(
        "-m",
        "--metric",
        "metrics",
        multiple=True,
        default=default,
        show_default=True,
        metavar="METRIC",
        help="A metric as it is spelled: P@10, 'nDCG(gain=exp)@100', my_module:my_metric@10. Repeat for more.",
    )

    def add(command: Command) -> Command:
        return option(runs_named_code("metrics")(command))

    return add


def averaging_options(average: str, coverage: str, by: str) -> Callable[[Command], Command]:
    """Give a command the options of how lists are averaged; it says what it does with the first two."""

    def add(command: Command) -> Command:
        command = click.option(
            "--by",
            type=click.Choice(get_args(By)),
            default=by,
            show_default=True,
            help="Take lists, or users after averaging each user's lists.",
        )(command)
        return decision_options(
            Averaging, average={"metavar": "AVERAGE", "help": average}, coverage={"help": coverage}
        )(command)

    return add
