"""``--read`` and ``--read-runs``: how files of ratings and of ranked lists are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, get_args

import click
from click.shell_completion import CompletionItem

from cranfield._checks import one_of
from cranfield._errors import SettingError, nearest, suggestion
from cranfield._files import meant
from cranfield.cli._options import add_options, unpack_option
from cranfield.data import READING, Ratings, read
from cranfield.rankings import Gaps
from cranfield.tables import MissingColumnError, is_parquet

Read = TypeVar("Read")

SchemaKeys = Mapping[str, tuple[Callable[[str], Any], str]]
"""The keys of a schema: how the text of each is read, and what it says."""

_PAIR = re.compile(r"""\s*(?P<key>[^\s=,]+)\s*=\s*(?P<value>"[^"]*"|'[^']*'|,(?=\s*(?:,|$))|[^,]*?)\s*(?:,|$)""")
_WORDS: Mapping[str, Any] = {"none": None, "true": True, "false": False}


def _word(text: str) -> Any:
    return _WORDS.get(text.lower(), text)


def _or_none(text: str) -> str | bool:
    return False if text.lower() in ("none", "false") else text


def _with_tabs(text: str) -> str:
    # A shell hands over the two characters \\t where a tab is meant.
    return text.replace("\\t", "\t")


def _weights(text: str) -> dict[str, float]:
    try:
        return {name: float(number) for name, number in pairs_of(text).items()}
    except ValueError:
        raise SettingError(f"weights={text!r} cannot be read; write weights='click=1, purchase=5'") from None


def pairs_of(text: str) -> dict[str, str]:
    """Return the pairs of a text such as ``user=uid, separator=;``; a value with a comma is in quotes."""
    pairs: dict[str, str] = {}
    place = 0
    while place < len(text.rstrip()):
        pair = _PAIR.match(text, place)
        if pair is None:
            raise SettingError(f"{text[place:].strip()!r} cannot be read; write key=value, and commas between pairs")
        if pair["key"] in pairs:
            raise SettingError(f"{pair['key']} is given twice; give it once")
        value = pair["value"]
        pairs[pair["key"]] = value[1:-1] if value[:1] in ("'", '"') and value[-1:] == value[0] != value else value
        place = pair.end()
    return pairs


class Keywords(click.ParamType):  # type: ignore[type-arg]  # takes no parameter before Click 8.4
    """How files are read, in one option: ``user=uid, item=sku, separator=;``. A key is a keyword of the reader."""

    name = "schema"

    def __init__(self, keys: SchemaKeys) -> None:
        self.keys = keys

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the keywords."""
        if isinstance(value, Mapping):
            return value
        try:
            return {key: self._read(key, text) for key, text in pairs_of(value).items()}
        except SettingError as error:
            raise click.BadParameter(str(error), ctx, param) from error

    def _read(self, key: str, text: str) -> Any:
        if key not in self.keys:
            raise SettingError(f"there is no key {key!r}{nearest(key, self.keys)}")
        return self.keys[key][0](text)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Complete the key that is being typed."""
        before, comma, key = incomplete.rpartition(",")
        return [
            CompletionItem(f"{before}{comma}{name}=", help=said)
            for name, (_, said) in self.keys.items()
            if name.startswith(key.strip())
        ]


def _one_of(name: str, *words: str) -> Callable[[str], str]:
    return lambda text: one_of(name, text, words)


RATINGS: SchemaKeys = {
    "user": (str, "the column of users: its name, or its position counted from 1"),
    "item": (str, "the column of items"),
    "rating": (_or_none, "the column of ratings; none: count every row as 1 (implicit feedback)"),
    "time": (_or_none, "the column of times; none: ignore them"),
    "separator": (_with_tabs, "what stands between fields: ; or :: or \\t or ','"),
    "header": (_word, "true or false: whether the first row holds the column names"),
    "quote": (_word, "none: quotes are ordinary characters"),
    "encoding": (str, "the text encoding"),
    "repeated": (
        str,
        "if a user has an item several times: error, or the rule that makes one rating of them (last, first, mean, "
        "max, sum, count, binary), or two for training and test (sum/max); auto: sum/max for events, error for ratings",
    ),
    "basket": (str, "the column of baskets or sessions, which splits keep together"),
    "session_gap": (str, "make sessions: a longer pause, such as 30min, starts one"),
    "type": (str, "the column of types of events"),
    "weights": (_weights, "what events of each type are worth: 'click=1, purchase=5'"),
    "counts": (
        _one_of("counts", "keep", "to_ratings"), "keep play counts, or make ratings from 1 to 5 (Celma's method)",
    ),
}  # fmt: skip
_TEST: SchemaKeys = {"format": (_one_of("format", "ratings", "qrels"), "the format of the test file: ratings or qrels")}
_RUNS: SchemaKeys = {
    "user": (str, "the column of users, if it differs from that of --read"),
    "item": (str, "the column of items, if it differs from that of --read"),
    "score": (str, "the column of scores"),
    "rank": (str, "the column of ranks"),
    "prediction": (str, "the column of predicted ratings"),
    "system": (str, "the column of systems, in a file with the runs of several systems"),
    "separator": (_with_tabs, "what stands between fields"),
    "header": (_word, "true or false: whether the first row holds the column names"),
    "gaps": (
        _one_of("gaps", *get_args(Gaps)),
        "ranks that leave places out: keep these with an unknown item, or close them",
    ),
}
_OF_LISTS: SchemaKeys = {
    "format": (str, "the format, if it is not detected"),
    "tag": (_word, "true: systems are named after the tag in their TREC run, not the file"),
}

READING_OPTIONS = ("read",)
"""The names of the options that `reading_options` adds, apart from a limit."""


def _schema_option(name: str, keys: SchemaKeys, help: str) -> Any:
    said = f"{help} Keys: {', '.join(keys)}.  [default: detected]"
    return click.option(name, type=Keywords(keys), multiple=True, metavar="SCHEMA", help=said)


def _together(given: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the keywords of an option that is given once or more."""
    pairs = [pair for keywords in given for pair in keywords.items()]
    twice = next((key for place, (key, _) in enumerate(pairs) if key in dict(pairs[:place])), None)
    if twice is not None:
        raise click.UsageError(f"{twice} is given twice; give it once")
    return dict(pairs)


def reading_options(command: Callable[..., Any], *, of_test: bool = False) -> Callable[..., Any]:
    """Give a command ``--read``; it receives the keywords of `cranfield.data.read` as one dictionary, ``reading``.

    What is not given is detected by `read`. With ``of_test``, the command also receives ``test_format``.
    """

    @wraps(command)
    def with_reading(*arguments: Any, **options: Any) -> Any:
        given = _together(options.pop("read"))
        test = {"test_format": given.pop("format", None)} if of_test else {}
        return command(*arguments, reading={**READING, **given}, **test, **options)

    what = "How ratings are read: 'user=uid, item=sku, time=ts, separator=;'."
    read_option = _schema_option("--read", {**RATINGS, **(_TEST if of_test else {})}, what)
    return add_options((read_option, unpack_option), with_reading)


def run_reading_options(command: Callable[..., Any], *, of_lists: bool = False) -> Callable[..., Any]:
    """Give a command ``--read-runs``; it receives the keywords of `cranfield.read_runs` as ``run_reading``.

    Quotes and encoding are in ``reading``, for ratings and runs alike. With ``of_lists``, keys are also ``format`` and
    ``tag``.
    """

    @wraps(command)
    def with_run_reading(*arguments: Any, **options: Any) -> Any:
        keywords = {**dict.fromkeys(_RUNS), "gaps": "keep", **({"format": None, "tag": False} if of_lists else {})}
        return command(*arguments, run_reading={**keywords, **_together(options.pop("read_runs"))}, **options)

    what = "How runs are read: 'user=uid, score=s, separator=;'."
    return _schema_option("--read-runs", {**_RUNS, **(_OF_LISTS if of_lists else {})}, what)(with_run_reading)


def for_file(path: str, reading: Mapping[str, Any], files: Iterable[str]) -> dict[str, Any]:
    """Return the reading options of one of several files; a Parquet file does not get the options of text files.

    If every file is Parquet nothing is left out, so that reading refuses these options.
    """
    if not is_parquet(meant(path)) or all(is_parquet(meant(file)) for file in files):
        return dict(reading)
    of_text = ("separator", "header", "quote", "encoding")
    return {name: value for name, value in reading.items() if name not in of_text}


class SharedColumns:
    """Columns that are named once for several files, by role: each file that has a column of that name uses it."""

    def __init__(self, names: Mapping[str, str | None]) -> None:
        self._names = {role: name for role, name in names.items() if name is not None}
        self._taken: set[str] = set()
        self._missing: dict[str, MissingColumnError] = {}

    def read(self, reader: Callable[..., Read], path: str | Path, **reading: Any) -> Read:
        """Read a file with the named columns that it has, unless ``reading`` names others."""
        names = {role: name for role, name in self._names.items() if reading.get(role) is None}
        while True:
            try:
                content = reader(path, **{**reading, **names})
            except MissingColumnError as error:
                # A pipe cannot be read again.
                if error.role not in names or not (meant(path).is_file() or meant(path).is_dir()):
                    raise
                del names[error.role]
                self._missing.setdefault(error.role, error)
            else:
                self._taken.update(names)
                return content

    def check(self) -> None:
        """Refuse a column that no file has."""
        for role, error in self._missing.items():
            if role not in self._taken:
                raise error


def file_or_dataset(source: str, reading: dict[str, Any], part: str | None = None) -> Ratings:
    """Read a file of ratings, or load the known dataset of that name (a ``part`` of it, if published in parts)."""
    from cranfield import datasets

    known = source.lower() in datasets.known()
    path = Path(source)
    if path.is_file() or path.name != source or path.suffix or (path.is_dir() and not known):
        return read(source, **reading)
    if not known:
        raise SettingError(
            f"{source!r} is neither a file nor a known dataset; see: cranfield data list"
            f"{suggestion(source, datasets.known())}"
        )
    changed = [name for name, value in reading.items() if value != READING[name]]
    if changed:
        raise SettingError(
            f"{source} is a known dataset and needs no {', '.join(changed)}; those options are for files"
        )
    return datasets.load(source, part=part)
