"""The experiment file: read and validate TOML, and write a commented file."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cranfield import _checks as check
from cranfield._errors import InputError, SettingError
from cranfield._files import write_text
from cranfield._own_code import names_code
from cranfield._registry import parse
from cranfield.comparisons import check_correction
from cranfield.experiments.decisions import DECISIONS, Decisions
from cranfield.experiments.experiment import ASSESSING, AUDITING, LIST_READING, NOTES, Experiment, System
from cranfield.experiments.presets import PRESETS
from cranfield.experiments.searching import Tuning, space_of
from cranfield.experiments.source import FEATURES, KINDS, READING, Source, at_key, check_keys, check_table
from cranfield.measures import Segmenting, file_and_column
from cranfield.recommenders import displayed_name

TOP = ("title", "seed", "repetitions", "decisions", "data", "systems", "notes", "labels", "assess", "audit")
"""The keys of an experiment file."""

SYSTEM = ("system", "run", *LIST_READING, "search", "metric", "trials")
"""The keys of a system that is given as a table instead of a spelling."""

_LETTERS = {
    "A1": "data selection",
    "A2": "train/test split",
    "B1": "selecting users",
    "B2": "non-computable items",
    "C1": "condensed or full lists",
    "C2": "metrics",
    "C3": "aggregation",
    "C4": "coverage shortfall",
    "D": "statistical tests",
}

_HEAD = """\
# An experiment for `cranfield run`. Every key has a default, which is shown here; leave out what you do not change.
# The decisions are named as in R. Cañamares, P. Castells, A. Moffat (2020), Offline evaluation options for
# recommender systems.
"""

_ABOUT_DEFAULTS = """\
# The defaults are those of the commands and of Python. Metrics cut at 100 are added to those cut at 10 because they
# depend less on which ratings happen to be in the test set (Valcarce, Bellogín, Parapar and Castells 2018).
"""

_DATA = """
# The ratings: give each set a name, and one of these sources:
#   file = "ratings.csv"                            a file, with options such as separator = "::" if needed
#   dataset = "ml-1m"                               a known dataset; see `cranfield data list`
#   simulate = "world(users=1000, items=500)"       a simulated world
#   train = "train.csv" and test = "test.csv"       data that are already divided; set split = "predefined"
# Several sets get one verdict over all; those of one site, with family = "movielens", count as one there.
"""

_SYSTEMS = """
# The systems, with the names that tables show; see `cranfield recommend --help`. The paper's matrix factorisation is
#   "MF" = "wrmf(factors=50, alpha=1, regularization=0.1, target=rating, binary=false)"
# and a file of ranked lists, if the split is predefined, is
#   "mine" = { run = "mine.tsv" }
# Your own code is a class with fit(train) and score(users), in a module next to this file or installed. It only runs
# with --allow-code:
#   "own" = "my_module:MyRecommender(k=5)"
# Hyper-parameters can be searched on a validation part, by lists of values, or by ranges with a number of trials:
#   "tuned" = { system = "knn", search = { k = [50, 100, 200] }, metric = "nDCG@10" }
"""

_NOTES = """
# Facts for the card that only you know:
#   data = "..."                                    where the data are available
#   tuning = "..."                                  how the hyper-parameters were chosen
#   code = "..."                                    where your own code is available
#   hardware = "..."                                what it ran on, if the log is wrong
# Names for people may stand in a table [labels], as in "temporal(train=0.8)" = "the newest ratings".
"""


_OPTIONAL = {
    "assess": (
        "which metric can be trusted on these data",
        "Which metric can be trusted on these data? The keys are options of `cranfield.assess`.",
    ),
    "audit": (
        "whether the winner survives other decisions",
        "Does the winner survive other decisions? See the page about audits.",
    ),
}


def read_experiment(path: str | Path) -> Experiment:
    r"""Read an experiment file; an error says in one line which key is wrong and what it may be.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "experiment.toml"
    >>> _ = path.write_text('[decisions]\nthreshhold = 5\n')
    >>> read_experiment(path)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    cranfield._errors.SettingError: ...experiment.toml, line 2, decisions: no key 'threshhold'; did you mean ...
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text)
    except FileNotFoundError as error:
        raise InputError("there is no such file", source=path, remedy="write one with: cranfield new") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"it cannot be read ({error})", source=path, remedy="give a text file in UTF-8") from error
    except (ValueError, RecursionError) as error:  # tomllib raises these for very long numbers and deep tables
        raise InputError(f"it is not TOML: {error}", source=path, remedy="fix that line") from error
    try:
        return named(experiment_of(table, base=path.parent))
    except _Mistakes as wrong:
        said = [f"{_line_of(text, mistake)}{mistake}" for mistake in wrong.mistakes]
        raise SettingError(f"{path}, {'; '.join(said)}") from None
    except SettingError as error:
        raise SettingError(f"{path}, {error}") from error


def named(experiment: Experiment) -> Experiment:
    """Return an experiment with the usual names of its systems; a name that equals the spelling was not chosen."""
    systems = [
        replace(system, name=displayed_name(system.name)) if system.name == system.spelling else system
        for system in experiment.systems
    ]
    return replace(experiment, systems=tuple(systems))


class _Mistakes(SettingError):
    """Every mistake in an experiment, in the order of the file's tables."""

    def __init__(self, mistakes: list[str]) -> None:
        super().__init__("; ".join(mistakes))
        self.mistakes = mistakes


def _line_of(text: str, mistake: str) -> str:
    """Return the line of the key that a mistake is about, or of its table; nothing if neither is written there."""
    place, _, said = mistake.partition(": ")
    place = place.partition("=")[0]
    named = re.search(r"no key '([^']+)'", said) or re.search(r"\b(\w+)=", mistake)
    table, name, above = "", place.rpartition(".")[2] if named is None else named[1], 0
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[([^\[\]]+)\]", line)
        if header is not None:
            table = header[1].replace('"', "").strip()
            above = number if table == place or (not above and place.startswith(f"{table}.")) else above
        elif re.match(rf"\s*[\"']?{re.escape(name)}[\"']?\s*=", line) and place.startswith(table):
            return f"line {number}, "
    return f"line {above}, " if above else ""


def experiment_of(table: Mapping[str, Any], *, base: Path = Path()) -> Experiment:
    """Return the experiment described by plain tables, such as those of a file; all mistakes are told at once."""
    mistakes: list[str] = []

    def tried(make: Callable[[], Any]) -> Any:
        try:
            return make()
        except SettingError as error:
            mistakes.extend(getattr(error, "mistakes", [str(error)]))

    tried(lambda: check_keys("the file", table, TOP))
    stated: dict[str, Any] = {key: table[key] for key in ("title", "seed", "repetitions") if key in table}
    if "decisions" in table:
        stated["decisions"] = tried(lambda: _decisions(check_table("decisions", table["decisions"])))
    if "data" in table:
        sources = tried(lambda: check_table("data", table["data"])) or {}
        stated["data"] = tuple([tried(partial(_source, name, source)) for name, source in sources.items()])
    if "systems" in table:
        stated["systems"] = tried(lambda: tuple(_systems(table["systems"])))
    for key, known in (("notes", NOTES), ("assess", ASSESSING), ("audit", AUDITING)):
        if key in table:
            stated[key] = dict(tried(partial(_known_keys, key, table[key], known)) or {})
    if "labels" in table:
        stated["labels"] = dict(tried(lambda: check_table("labels", table["labels"])) or {})
    if mistakes:
        raise _Mistakes(mistakes)
    return Experiment(**stated, base=base)


def _known_keys(key: str, stated: Any, known: Any) -> Mapping[str, Any]:
    return check_keys(key, check_table(key, stated), known)


def _decisions(table: Mapping[str, Any]) -> Decisions:
    """Return the decisions of a table; after a mistake, the others are looked for without its key."""
    mistakes: list[str] = []
    stated: dict[str, Any] = {}
    for name, value in table.items():
        try:
            check_keys("decisions", {name: value}, DECISIONS)
            stated[name] = tuple(value) if isinstance(value, list) else value
        except SettingError as error:
            mistakes.append(str(error))
    while True:
        try:
            with at_key("decisions"):
                decisions = Decisions(**stated)
                if "correction" in stated:
                    check_correction(decisions.significance, stated["correction"])
            break
        except SettingError as error:
            wrong = next((name for name in re.findall(r"\b(\w+)=", str(error)) if name in stated), None)
            if wrong is not None and stated[wrong] == "none":
                stated[wrong] = None  # TOML has no other way to write it
                continue
            mistakes.append(str(error))
            if wrong is None:
                break
            del stated[wrong]
    if mistakes:
        raise _Mistakes(mistakes)
    return decisions


_STATED = (*KINDS, "test", *FEATURES, "family")


def _source(name: str, table: object) -> Source:
    table = {"file": table} if isinstance(table, str) else table
    for key in {"path", "source", "csv", "filename"}.intersection(check_table(f"data.{name}", table)):
        raise SettingError(f"data.{name}: no key {key!r}; a file of ratings is called 'file'")
    entries = check_keys(f"data.{name}", check_table(f"data.{name}", table), (*_STATED, *READING))
    where = {key: entries[key] for key in _STATED if key in entries}
    return Source(name, **where, reading={key: entries[key] for key in READING if key in entries})


def _systems(stated: object) -> Iterator[System]:
    if isinstance(stated, list):
        for entry in stated:
            if not isinstance(entry, str):
                raise SettingError(f"systems: {entry!r} is not text; write names, as in systems = ['knn(k=100)']")
            # The name of a system becomes a file name, so it cannot contain the module of its code.
            yield System(str(parse(entry)).partition(":")[2] if names_code(entry) else displayed_name(entry), entry)
        return
    for name, entry in check_table("systems", stated).items():
        yield _system(name, entry) if isinstance(entry, dict) else System(name, entry)


def _system(name: str, table: Mapping[str, Any]) -> System:
    where = f"systems.{name}"
    check_keys(where, table, SYSTEM)
    reading = {key: table[key] for key in LIST_READING if key in table}
    if "search" not in table:
        for key in ("metric", "trials"):
            if key in table:
                raise SettingError(f"{where}: {key} belongs to a search; add one, as in search = {{ k = [50, 100] }}")
        return System(name, table.get("system"), table.get("run"), **reading)
    with at_key(where):
        space = space_of(check_table("search", table["search"]))
        tuning = Tuning(space, table.get("metric"), table.get("trials"))
    return System(name, table.get("system"), table.get("run"), tuning, **reading)


def toml_of(experiment: Experiment, about: str = _ABOUT_DEFAULTS) -> str:
    """Return an experiment as a commented TOML file that reads back as the same; ``about`` is a comment at its top."""
    lines = [_HEAD + about, f"title = {_value(experiment.title)}"]
    lines.append(f"seed = {experiment.seed}                 # fixes every random choice")
    lines.append(f"repetitions = {experiment.repetitions}          # how many times the ratings are split\n")
    lines.append("[decisions]")
    lines += _decision_lines(experiment.decisions)
    lines.append(_DATA.rstrip("\n"))
    for source in experiment.data:
        lines.append(f"[data.{_key(source.name)}]")
        where = {key: getattr(source, key) for key in _STATED if getattr(source, key) is not None}
        lines += [f"{key} = {_value(value)}" for key, value in {**where, **source.reading}.items()]
    lines.append(_SYSTEMS + "[systems]")
    for system in experiment.systems:
        lines.append(f"{_key(system.name)} = {_value(_stated(system))}")
    lines.append(_NOTES + "[notes]")
    lines += [f"{key} = {_value(value)}" for key, value in experiment.notes.items()]
    if experiment.labels:
        lines.append("\n[labels]")
        lines += [f"{_key(key)} = {_value(value)}" for key, value in experiment.labels.items()]
    lines += [*_optional_lines("assess", experiment.assess), *_optional_lines("audit", experiment.audit)]
    return "\n".join(lines) + "\n"


def _stated(system: System) -> Any:
    if system.run is not None:
        return {"run": system.run, **system.reading}
    return system.spelling if system.tuning is None else {"system": system.spelling, **system.tuning.as_dict()}


def _decision_lines(decisions: Decisions) -> Iterator[str]:
    letter = None
    for name, value in decisions.as_dict().items():
        about = DECISIONS[name].metadata
        if about["letter"] != letter:
            letter = about["letter"]
            yield f"# {letter} {_LETTERS[letter]}"
        line, says = f"{name} = {_value(value)}", about["says"]
        if about["choices"]:
            says += f" ({' or '.join(about['choices'])})"
        if len(line) > 32 or len(says) > 85:
            yield f"# {says}"
            yield line
        else:
            yield f"{line:<32} # {says}"


def _optional_lines(name: str, table: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the lines of a table that an experiment may leave out; tables inside it come last."""
    question, about = _OPTIONAL[name]
    if table is None:
        yield f"\n# To ask {question}, remove the next comment mark.\n# [{name}]"
        return
    yield f"\n# {about}\n[{name}]"
    yield from (f"{key} = {_value(value)}" for key, value in table.items() if not isinstance(value, Mapping))
    for key, inner in table.items():
        if isinstance(inner, Mapping):
            yield f"[{name}.{key}]"
            yield from (f"{_key(entry)} = {_value(value)}" for entry, value in inner.items())


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_value(inner)}" for name, inner in value.items()) + " }"
    # JSON text, numbers and booleans are valid TOML, except that TOML forbids a bare DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def moved(experiment: Experiment, folder: Path) -> Experiment:
    """Return an experiment with its file names relative to another folder."""

    def from_there(name: str | None) -> str | None:
        if name is None:
            return None
        path = experiment.path(name).absolute()
        try:
            return Path(os.path.relpath(path, folder.absolute())).as_posix()
        except ValueError:
            # On Windows there is no relative path from one drive to another.
            return path.as_posix()

    def segment_from_there(text: str) -> str:
        file = None if Segmenting.is_built_in(text) else file_and_column(text, experiment.path)
        if file is None:
            return text
        path, column = file
        return f"{from_there(str(path.absolute()))}{'' if column is None else f':{column}'}"

    def source_from_there(source: Source) -> Source:
        files: dict[str, Any] = {key: from_there(getattr(source, key)) for key in ("file", "train", "test", *FEATURES)}
        return replace(source, **files)

    segments = experiment.decisions.segment
    return replace(
        experiment,
        data=tuple(map(source_from_there, experiment.data)),
        systems=tuple(replace(system, run=from_there(system.run)) for system in experiment.systems),
        decisions=experiment.decisions.with_(segment=tuple(map(segment_from_there, segments))),
        base=folder,
    )


def new_experiment(path: str | Path = "experiment.toml", *, preset: str | None = None, force: bool = False) -> Path:
    """Write a commented starting file: the defaults, or a preset, on a simulated world.

    Parameters
    ----------
    path
        The file to write. An existing file is only replaced with ``force``.
    preset
        The decisions of a paper instead of the defaults: ``canamares2020``, ``valcarce2018``, ``valcarce2020``,
        ``bellogin2017`` or ``aftab2022``.

    Examples
    --------
    >>> import tempfile
    >>> path = new_experiment(Path(tempfile.mkdtemp()) / "experiment.toml")
    >>> read_experiment(path) == Experiment()
    True
    """
    path = Path(path)
    start = None if preset is None else PRESETS[check.one_of("preset", preset, tuple(PRESETS))]
    text = toml_of(Experiment()) if start is None else toml_of(start.experiment, f"# {start.head}\n")
    if path.exists() and not force:
        raise SettingError(f"{path} already exists; choose another name, or replace it with force=True")
    return write_text(path, text)
