"""The tutorial notebook runs from its first cell to its last, and what it shows displays itself."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from cranfield.experiments import read_experiment

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))


def _show(source: str, names: dict[str, object]) -> object:
    """Run a cell as a notebook does; return the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), "cell", "eval"), names)


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_runs_and_its_results_show_themselves(path, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    book = json.loads(path.read_text(encoding="utf-8"))
    assert book["nbformat"] == 4
    names: dict[str, object] = {}
    cells = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    shown = [value for value in (_show(cell, names) for cell in cells) if value is not None]
    assert capsys.readouterr().out
    assert len(shown) >= 5
    tables = [value._repr_html_() for value in shown if hasattr(value, "_repr_html_")]
    assert len(tables) >= 4
    assert all("<table" in table for table in tables)
    charts = [value._repr_mimebundle_() for value in shown if hasattr(value, "_repr_mimebundle_")]
    assert len(charts) >= 2
    assert all("<svg" in chart["image/svg+xml"] for chart in charts)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS[0].parent.glob("*.toml")), ids=lambda path: path.stem)
def test_an_example_file_is_an_experiment(path):
    assert read_experiment(path).systems


def test_notebooks_are_kept_without_outputs():
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            assert not cell.get("outputs"), f"{path.name} holds outputs; clear them"
