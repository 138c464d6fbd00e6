"""The package is a line: a stage imports only what stands to its left."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "cranfield"
LINE = [
    "data",
    "split",
    "recommend",
    "rank",
    "measure",
    "compare",
    "assess",
    "experiment",
    "report",
    "studies",
    "cli",
]
HEAVY = ["scipy", "pandas", "numba", "sklearn", "implicit", "altair", "torch", "rich"]


def _imported_stages(path: Path) -> set[str]:
    stages = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "cranfield" and len(parts) > 1 and parts[1] in LINE:
                stages.add(parts[1])
    return stages


@pytest.mark.parametrize("stage", LINE)
def test_a_stage_imports_only_what_stands_to_its_left(stage):
    right = set(LINE[LINE.index(stage) + 1 :])
    for path in (SOURCE / stage).rglob("*.py"):
        assert not (_imported_stages(path) & right), path


def test_the_folders_are_the_stages_of_the_line():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders == set(LINE)


def test_importing_cranfield_imports_nothing_heavy():
    code = f"import sys, cranfield; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
