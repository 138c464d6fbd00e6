"""The reference of the site has an entry for all that has a name. Building it needs the extra ``docs``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

import cranfield as cf
from cranfield.experiments.decisions import DECISIONS
from cranfield.recommenders import SYSTEMS

pytest.importorskip("sphinx", reason="the site needs Sphinx; install the extra docs")

EXTENSION = Path(__file__).parents[1] / "docs" / "_extensions" / "reference.py"


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    spec = importlib.util.spec_from_file_location("reference", EXTENSION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setitem(sys.modules, "reference", module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("reference")
    module.write_pages(folder)
    yield {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    monkeypatch.undo()


@pytest.mark.parametrize(("page", "names"), [("metrics", cf.known_metrics), ("systems", lambda: SYSTEMS)])
def test_every_registered_name_has_a_section(pages, page, names):
    for name in names():
        assert f"\n## {name}\n" in pages[page]


def test_every_public_object_has_a_page(pages):
    assert {f"python-{name}" for name in cf.__all__ if not name.startswith("__")} <= set(pages)


def test_every_decision_is_in_the_table(pages):
    for name in DECISIONS:
        assert f"| `{name}` |" in pages["decisions"]


def test_every_command_has_a_page_with_its_options(pages):
    assert "--significance TEST" in pages["command-compare"]
    assert "`--users INTEGER`" in pages["command-data"]
