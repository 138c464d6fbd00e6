"""The command line is small: few options, short helps, one word for one thing, and messages in its own words."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import cranfield as cf
from cranfield.cli import cranfield as group
from cranfield.cli._options import MOST_SHOWN, in_words_of
from cranfield.cli._reading import pairs_of

SOURCE = Path(cf.__file__).parent
MOST_OPTIONS = 110


def _commands(within: click.Group = group) -> Iterator[click.Command]:
    context = click.Context(within)
    for name in within.list_commands(context):
        command = within.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command)
        else:
            yield command


COMMANDS = list(_commands())


def _options(command: click.Command) -> list[click.Option]:
    parameters = command.get_params(click.Context(command))
    return [parameter for parameter in parameters if isinstance(parameter, click.Option)]


def test_there_are_few_distinct_options():
    assert len({max(option.opts, key=len) for command in COMMANDS for option in _options(command)}) <= MOST_OPTIONS


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_help_shows_at_most_30_options_and_help_all_every_one(command):
    short, full = (_help(command, option) for option in ("--help", "--help-all"))
    shown = [option for option in _options(command) if _is_in(option, short)]
    assert len(shown) <= MOST_SHOWN + 2
    if len(_options(command)) > MOST_SHOWN + 1:
        assert all(_is_in(option, full) for option in _options(command))
    else:
        assert len(shown) == len(_options(command))


def _is_in(option: click.Option, text: str) -> bool:
    word = re.escape(max(option.opts, key=len))
    return re.search(rf"^  (?:-\w, )?{word}\b", text, re.MULTILINE) is not None


def _help(command: click.Command, option: str) -> str:
    from click.testing import CliRunner

    return CliRunner().invoke(command, [option]).output


def test_no_two_options_of_a_command_differ_by_one_letter():
    for command in COMMANDS:
        words = {max(option.opts, key=len) for option in _options(command)}
        assert not {word for word in words if f"{word}s" in words}, command.name


def test_an_option_has_one_help_or_one_kind_of_value_in_all_commands():
    kinds = defaultdict(set)
    for command in COMMANDS:
        for option in _options(command):
            kinds[max(option.opts, key=len)].add(option.is_flag)
    assert {word: both for word, both in kinds.items() if len(both) > 1} == {"--report": {True, False}}


def _texts() -> Iterator[tuple[Path, str]]:
    """Give every text of the library that is not a docstring; the command line may name its own options."""
    for path in SOURCE.rglob("*.py"):
        if "cli" in path.relative_to(SOURCE).parts:
            continue
        tree = ast.parse(path.read_text())
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                yield path, node.value


COMMAND_LINES = ("file.py", "entry.py")
"""Where whole commands are written: in a new experiment file, and to fetch a dataset."""

WHOLE_COMMANDS = re.compile(r"cranfield [a-z-]+ [^\"]*--[a-z]|--allow-code:|recommend --help|and run: cranfield")


def test_no_message_of_the_library_names_an_option_of_the_command_line():
    named = [
        (path.name, text)
        for path, text in _texts()
        if re.search(r"(?<![\w-])--[a-z][a-z-]+", text) and not WHOLE_COMMANDS.search(text)
    ]
    assert [(name, text[:80]) for name, text in named if name not in COMMAND_LINES] == []


@pytest.mark.parametrize(
    ("name", "said", "expected"),
    [
        ("compare", "significance='odd' is not one of them", "--significance odd is not one of them"),
        ("evaluate", "give them as train=...", "give them as --train"),
        ("evaluate", "weighted(by=train) needs them", "weighted(by=train) needs them"),
        ("evaluate", "take ranks with gaps='close'", "take ranks with --read-runs gaps=close"),
        ("evaluate", "leave separator=... out", "leave --read or --read-runs separator=... out"),
        ("data fetch", "take it as it is with verify=False", "take it as it is with --no-verify"),
        ("data fetch", "check from_path=...", "check --from"),
        ("clean", "free=True frees them", "--force frees them"),
        ("run", "give allow_code=True", "give --allow-code"),
        ("recommend", "give user_features=...", "give --features user=..."),
        ("run", "raise the limit with cranfield.settings.unpack_limit", "raise the limit with --unpack-limit"),
        ("show", "nDCG(gain=exp)@10 and x=5 are left", "nDCG(gain=exp)@10 and x=5 are left"),
    ],
)
def test_a_message_is_said_with_the_options_of_the_command_that_failed(name, said, expected):
    (command,) = (own for own in COMMANDS if own.name == name.split()[-1])
    assert in_words_of(command, said) == expected


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("user=uid, item=sku, time=ts, separator=;", {"user": "uid", "item": "sku", "time": "ts", "separator": ";"}),
        ("separator=,", {"separator": ","}),
        ("separator=,, user=x", {"separator": ",", "user": "x"}),
        ("weights='click=1, buy=5',type=kind", {"weights": "click=1, buy=5", "type": "kind"}),
        ("item=the item , user=a=b", {"item": "the item", "user": "a=b"}),
        ("", {}),
    ],
)
def test_a_schema_is_pairs_with_commas_between_them(text, pairs):
    assert pairs_of(text) == pairs


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("usr=u", "there is no key 'usr'; did you mean 'user'?"),
        ("user", "'user' cannot be read; write key=value"),
        ("user=a, user=b", "user is given twice"),
        ("counts=many", "counts='many' is not one of keep, to_ratings"),
        ("type=t, weights=click", "weights='click' cannot be read"),
    ],
)
def test_mistakes_in_a_schema_are_told_before_a_file_is_read(cranfield, given, said):
    found = cranfield("data", "describe", "there is none.csv", "--read", given)
    assert found.code == 2
    assert said in found.err or "cannot be read; write" in found.err
    assert "none.csv" not in found.err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("comp", {"compare"}),
        ("compare --significance s", {"student", "sign"}),
        ("evaluate --lists ", {"full", "condensed"}),
        ("evaluate --read user=u,se", {"user=u,separator=", "user=u,session_gap="}),
        ("recommend -s pop", {"popularity"}),
        ("split ratings.csv --method temp", {"temporal"}),
        ("replicate rend", {"rendle2020"}),
    ],
)
def test_a_shell_completes_commands_and_the_values_of_decisions(words, found):
    *before, last = words.split(" ")
    offered = {item.value for item in ShellComplete(group, {}, "cranfield", "").get_completions(before, last)}
    assert offered == found
