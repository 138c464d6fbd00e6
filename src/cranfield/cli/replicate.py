"""``cranfield replicate``: a paper's study on any ratings, next to what the paper printed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import click
from click.shell_completion import CompletionItem

from cranfield import datasets
from cranfield._errors import SettingError, nearest
from cranfield._polars import read_parquet
from cranfield._registry import Spelling, parse
from cranfield._settings import settings
from cranfield.assessments import SIZES
from cranfield.cli._options import AGAIN, HelpfulCommand, common_options, jobs_option, numbers, resumes, systems_option
from cranfield.cli._output import say, tell
from cranfield.cli._reading import file_or_dataset, for_file, reading_options
from cranfield.cli._report import say_where
from cranfield.data import Ratings, read
from cranfield.datasets import cached
from cranfield.judgments import NegativeGrades, notes_on_negative_grades
from cranfield.rankings import read_test
from cranfield.splits import Split, predefined
from cranfield.studies import BELLOGIN_2017, CANAMARES_CASTELLS_2018, CANAMARES_CASTELLS_2020, STUDIES, replicate
from cranfield.tables import is_parquet

_OWN = ("seeds", "curve_seeds", "targets", "epochs", "all_systems", "play_counts")
"""The options of studies that are spelled with their names."""


def _signatures() -> list[str]:
    """Return how each study is spelled."""
    return [
        f"{name}({', '.join(f'{option}=...' for option in _OWN if option in study.options)})".replace("()", "")
        for name, study in STUDIES.items()
    ]


class StudyName(click.ParamType):  # type: ignore[type-arg]  # takes no parameter before Click 8.4
    """A study, with options of its own in brackets: ``canamares2020(seeds=5, curve_seeds=1)``."""

    name = "study"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the spelling of a study."""
        try:
            spelling = parse(value)
            if spelling.name not in STUDIES:
                raise SettingError(f"there is no study {spelling.name!r}{nearest(spelling.name, STUDIES)}")
            known = [name for name in _OWN if name in STUDIES[spelling.name].options]
            for name, _ in spelling.parameters:
                if name not in known:
                    raise SettingError(f"{spelling.name} has no option {name!r}{nearest(name, known) if known else ''}")
        except SettingError as error:
            raise click.BadParameter(str(error), ctx, param) from error
        return spelling

    def get_missing_message(self, *_: Any, **__: Any) -> str:
        """Return which studies there are."""
        return f"Choose from: {', '.join(STUDIES)}"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a study."""
        return [CompletionItem(name) for name in STUDIES if name.startswith(incomplete)]


class StudyCommand(HelpfulCommand):
    """A command whose help shows only the options of the study that is named before ``--help``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Note which study is named."""
        ctx.meta[__name__] = next(
            (STUDIES[word] for word in (arg.split("(")[0] for arg in args) if word in STUDIES), None
        )
        return super().parse_args(ctx, args)

    def shown(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the options that the study takes, or all."""
        study, options = ctx.meta.get(__name__), super().shown(ctx)
        if study is None:
            return options
        refused = {_PARAMETERS.get(name, name) for own in STUDIES.values() for name in own.options}
        refused -= {_PARAMETERS.get(name, name) for name in study.options}
        refused |= set() if study.takes_threshold else {"threshold"}
        return [option for option in options if option.name not in refused]


_EXAMPLES = "\b\nStudies:\n" + "\n".join(f"  {line}" for line in _signatures())
_EXAMPLES += """

\b
Examples:
  cranfield replicate valcarce2020 --data ml-1m
  cranfield replicate valcarce2018 --data ratings.csv --test test.csv --out again
  cranfield replicate 'canamares2020(seeds=5)' --data ml-1m --data ratings.csv
  cranfield replicate bellogin2017 --data ml-1m --data hetrec2011-lastfm.parquet --data lastfm-1k
  cranfield replicate canamares-castells2018 --data cm100k
  cranfield replicate aftab2022 --data ml-1m --data renttherunway.parquet --read repeated=mean
  cranfield replicate rendle2020 --data ml-1m --negatives ml-1m-ncf-negatives.parquet
  cranfield replicate valcarce2020 --data ml-100k --folds 2 --samples 5 -s popularity -s 'knn(k=50)' -s puresvd
"""


_PARAMETERS = {"known": "observed"}  # the names of options here, if they differ from those of `replicate`


@click.command(cls=StudyCommand, epilog=_EXAMPLES)
@click.argument("study", type=StudyName())
@click.option(
    "--data",
    required=True,
    multiple=True,
    metavar="FILE|NAME",
    help="The ratings: a file, or a known dataset. Repeat for more; each dataset gets its own panel or table rows. For "
    "canamares-castells2018, a file needs a column known: whether the user knew the item before.",
)
@click.option(
    "--known",
    "observed",
    metavar="FILE",
    help="For canamares-castells2018 and canamares-castells2020, if --data has ratings of items drawn at random: the "
    "ratings that a service would have observed.  [default: the training part of a dataset such as coat]",
)
@click.option("--out", metavar="FOLDER", help="The output folder; a second run continues.  [default: the study's name]")
@click.option("--test", "split", metavar="FILE", help="The test ratings, if the split is known; the rest is training.")
@click.option("--folds", type=int, help="The number of folds.  [default: the paper's]")
@systems_option(
    "A system. Repeat for more. They replace the paper's; in bellogin2017 only those of the same kind, and in "
    "canamares-castells2018 and canamares-castells2020 they are added.  [default: the paper's]"
)
@click.option(
    "--samples", type=int, help="The number of samples per size in random scenarios.  [default: 50; 20 for aftab2022]"
)
@click.option(
    "--repetitions",
    type=int,
    help="How often to run the whole study, each time with other splits, draws and training runs.  [default: once]",
)
@click.option(
    "--sizes",
    metavar="GRID",
    help="How much of the test set remains: fives, ones, top, or shares such as 1,0.5,0.1.  [default: the paper's]",
)
@click.option(
    "--negatives",
    metavar="FILE",
    help="For rendle2020: the test item of each user and the items it is ranked among, in the columns user, item and "
    "negatives.",
)
@click.option(
    "--threshold",
    type=float,
    help="The lowest rating of a relevant item.  [default: 4; 5 for bellogin2017; 3 of 4 for canamares-castells2018; "
    "8 of 10 for aftab2022]",
)
@click.option("--decimals", type=int, help="Round averages before ordering systems.  [default: 12]")
@click.option("--figures/--no-figures", default=True, help="Whether to draw the figures.")
@click.option(
    "--negative-grades",
    type=click.Choice(get_args(NegativeGrades)),
    help="What test grades below 0 mean: judged as not relevant, not judged, or pooled but not judged.  "
    "[default: judged]",
)
@reading_options
@jobs_option
@common_options
@resumes(AGAIN)
def replicate_command(
    study: Spelling,
    data: tuple[str, ...],
    observed: str | None,
    out: str | None,
    split: str | None,
    systems: tuple[str, ...],
    sizes: str | None,
    negative_grades: NegativeGrades | None,
    reading: dict[str, Any],
    **options: Any,
) -> None:
    """Repeat the study of a paper on any ratings: its tables, figures and claims, and which claims hold.

    With the name of a study, --help shows its options only.
    """
    files = [*data, *(file for file in (split, observed) if file is not None)]
    known: Ratings | list[Ratings | None] | None = None
    ratings: list[Ratings | Split] = []
    if observed is None and all(_is_pair(study.name, source) for source in data):
        pairs = [observed_and_judged(source, reading) for source in data]
        known, ratings = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    else:
        read_source = _ratings_or_plays if study.name == BELLOGIN_2017.name else file_or_dataset
        ratings += [read_source(source, for_file(source, reading, files)) for source in data]
        known = None if observed is None else file_or_dataset(observed, for_file(observed, reading, files))
    test = None if split is None else read_test(split, **for_file(split, reading, files))
    if test is not None:
        tell(notes_on_negative_grades(test, negative_grades or "judged"))
    replication = replicate(
        study.name,
        ratings,
        out=out or study.name,
        split=test,
        systems=systems or None,
        sizes=sizes if sizes is None or sizes in SIZES else numbers("--sizes", sizes),
        negative_grades=negative_grades,
        known=known,
        **options,
        **dict(study.parameters),
    )
    say(replication)
    if not settings.quiet:
        say_where([], [replication.folder / "report.html"])


def _is_pair(study: str, source: str) -> bool:
    """Whether a study takes both parts of its data: the observed ratings, and ratings of items drawn at random."""
    if study == CANAMARES_CASTELLS_2018.name:
        return True
    if study != CANAMARES_CASTELLS_2020.name or Path(source).exists() or source.lower() not in datasets.known():
        return False
    return datasets.find(source.lower()).parts == ("train", "test")


def _ratings_or_plays(source: str, reading: dict[str, Any]) -> Ratings | Split:
    """Read ratings; for Last.fm 1K read the plays, divided by time as in Bellogín et al. (2017)."""
    divided = "lastfm-1k-temporal"
    if source.lower() not in ("lastfm-1k", divided) or Path(source).exists():
        return file_or_dataset(source, reading)
    # The archive fetched under the other name is the same one.
    there = None if cached(datasets.find(divided)) else cached(datasets.find("lastfm-1k"))
    archive = None if there is None else there.folder / there.source
    has_archive = archive is not None and archive.exists()
    return predefined(*datasets.load_pair(divided, from_path=archive if has_archive else None), overlap="train")


def observed_and_judged(source: str, reading: dict[str, Any]) -> tuple[Ratings, Ratings]:
    """Read the ratings that a service would have observed, and all judgments.

    They are the two parts of a dataset; or the ratings that the column ``known`` marks, and all of them; or the parts
    ``train`` and ``test`` named by the column ``split`` of a Parquet file.
    """
    if not Path(source).is_file():
        file_or_dataset(source, reading)  # raises an error if the name is wrong
        return datasets.load_pair(source)
    if (parts := _parts_of(Path(source), reading)) is not None:
        return parts
    judged = read(source, **reading)
    flags = read(source, **{**reading, "rating": "known"})
    return judged.keep(flags.values > 0), judged


def _parts_of(path: Path, reading: dict[str, Any]) -> tuple[Ratings, Ratings] | None:
    """Return the parts named by the column ``split`` of a Parquet file; None if there is no such column."""
    if not is_parquet(path):
        return None
    frame = read_parquet(path)
    if "split" not in frame.columns or "known" in frame.columns:
        return None
    if set(frame["split"].unique()) != {"train", "test"}:
        raise SettingError(f"the column split of {path} must hold only train and test; give a column known instead")
    train, test = (read(frame.filter(split=part).drop("split"), **reading) for part in ("train", "test"))
    return replace(train, name=path.stem), replace(test, name=path.stem)
