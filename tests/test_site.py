"""The reference of the site has an entry for all that has a name. Building it needs the extra ``docs``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import click
import pytest

import cranfield as cf
from cranfield.cli import cranfield as command_line
from cranfield.experiments.decisions import DECISIONS
from cranfield.metrics.dialects import TOOLS

pytest.importorskip("sphinx", reason="the site needs Sphinx; install the extra docs")

EXTENSION = Path(__file__).parents[1] / "docs" / "_extensions" / "reference.py"


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("reference", EXTENSION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setitem(sys.modules, "reference", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    monkeypatch.undo()


@pytest.fixture(scope="module")
def pages(reference, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    reference.write_pages(folder)
    return {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}


def test_everything_that_is_registered_has_a_section_with_its_parameters(reference, pages):
    kinds = reference._kinds()
    registries = {"filters", "splits", "systems", "metrics", "gains", "averages", "segments", "tests", "corrections"}
    assert registries <= {kind.page for kind in kinds}
    for kind in kinds:
        for name, entry in kind.entries().items():
            assert f"\n## {name}\n\n`{entry.signature()}`" in pages[kind.page], name
        sentences = [reference._summary(entry) for entry in kind.entries().values()]
        assert all(sentences), kind.page
        assert len(set(sentences)) == len(sentences), kind.page


def test_every_dialect_has_its_tool_and_metrics(pages):
    for tool in TOOLS.values():
        assert f"\n## {tool.title}\n" in pages["dialects"]
        for name in tool.dialects:
            assert f"| `{name}` |" in pages["dialects"]


def test_every_public_object_has_a_page(pages):
    assert {f"python-{name}" for name in cf.__all__ if not name.startswith("__")} <= set(pages)


def test_every_decision_is_in_the_table(pages):
    for name in DECISIONS:
        assert f"| `{name}` |" in pages["decisions"]


def test_every_command_has_a_page_with_its_options(pages):
    assert "--significance TEST" in pages["command-compare"]
    assert "`--like FILE`" in pages["command-data"]
    context = click.Context(command_line)
    for name in command_line.list_commands(context):
        command = command_line.get_command(context, name)
        assert command is not None
        inner = [command]
        if isinstance(command, click.Group):
            inner = [child for part in command.list_commands(context) if (child := command.get_command(context, part))]
        for option in (option for part in inner for option in part.params if isinstance(option, click.Option)):
            assert option.hidden or option.opts[-1] in pages[f"command-{name}"], f"{name} {option.opts}"
