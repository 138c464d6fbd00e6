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
    "splits",
    "recommenders",
    "rankings",
    "measures",
    "comparisons",
    "assessments",
    "experiments",
    "reports",
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


FILES_OF_POLARS = {
    *(f"{verb}_{form}" for verb in ("read", "scan") for form in ("parquet", "csv", "ndjson", "ipc", "json", "excel")),
    *(f"{verb}_{form}" for verb in ("write", "sink") for form in ("parquet", "csv", "ndjson", "ipc", "json", "excel")),
    *("read_parquet_schema", "read_parquet_metadata", "read_csv_batched", "read_ipc_stream", "read_avro"),
}
# Bytes that are in memory have no name that could be taken for a pattern.
IN_MEMORY = ("file.read_bytes()", "io.BytesIO(", 'b"')


def _calls_of_polars(path: Path) -> list[str]:
    text = path.read_text()
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    found = []
    for call in calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr in FILES_OF_POLARS and call.args:
            first = ast.get_source_segment(text, call.args[0]) or ""
            if not (first == "data" or first.startswith(IN_MEMORY)):
                found.append(f"{path.name}: {call.func.attr}({first})")
    return found


def test_polars_opens_files_in_one_module_only_which_never_takes_a_name_for_a_pattern():
    found = [call for path in SOURCE.rglob("*.py") if path.name != "_polars.py" for call in _calls_of_polars(path)]
    assert found == []


def test_polars_is_given_no_name_of_a_file():
    # An open file is the one that was named; Polars takes a name for a pattern, an address or a place at home.
    text = (SOURCE / "_polars.py").read_text()
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    given = {
        ast.get_source_segment(text, call.args[0])
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in FILES_OF_POLARS
    }
    assert given == {"files", "_opened(source)", "_opened(path)", "target", "file"}
