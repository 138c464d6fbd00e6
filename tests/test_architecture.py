"""The package is a line: a stage imports only what stands to its left."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

import cranfield

SOURCE = Path(__file__).parents[1] / "src" / "cranfield"
LINE = [
    "facts",
    "tables",
    "data",
    "datasets",
    "simulate",
    "splits",
    "recommenders",
    "rankings",
    "judgments",
    "metrics",
    "measures",
    "comparisons",
    "across",
    "biases",
    "assessments",
    "store",
    "experiments",
    "audits",
    "reports",
    "studies",
    "cli",
]
HEAVY = ["scipy", "pandas", "numba", "sklearn", "implicit", "altair", "torch", "rich"]


Node = ast.Import | ast.ImportFrom | ast.ClassDef | ast.Call | ast.Name | ast.arg | ast.Constant


@cache
def _nodes(path: Path) -> list[Node]:
    """Return the imports, classes, calls, names and constants of a file; walking the whole package takes seconds."""
    kinds = get_args(Node)
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]


def _imports(path: Path) -> Iterator[list[str]]:
    """Give what a file imports from the package: the parts of each name."""
    for node in _nodes(path):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            if name.startswith("cranfield."):
                yield name.split(".")


def _imported_stages(path: Path) -> set[str]:
    return {parts[1] for parts in _imports(path) if parts[1] in LINE}


@pytest.mark.parametrize("stage", LINE)
def test_a_stage_imports_only_what_stands_to_its_left(stage):
    right = set(LINE[LINE.index(stage) + 1 :])
    for path in (SOURCE / stage).rglob("*.py"):
        assert not (_imported_stages(path) & right), path


def test_the_folders_are_the_stages_of_the_line():
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders == set(LINE)


def test_a_package_is_used_only_through_its_front_door():
    """Imports inside functions, relative ones and paths in strings count, too."""
    inside = re.compile(rf"cranfield\.({'|'.join(LINE)})\.\w+")
    for path in SOURCE.rglob("*.py"):
        own = path.relative_to(SOURCE).parts[0]
        for node in _nodes(path):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, path
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and inside.fullmatch(node.value):
                named.append(node.value)
            for name in named:
                door = inside.match(name)
                assert door is None or door[1] == own, f"{path}: {name}"


ENGINES = {"measures/engines.py", "measures/spark.py", "measures/ranged.py"}


def test_what_depends_on_the_engine_stands_with_the_engines():
    """Nothing else asks which engine holds the data, and no message sends the user to another one."""
    kinds = re.compile(r"isinstance\([^()]*\b(SparkRuns|SparkTest|RunTables|HeldOutTable)\b")
    advice = re.compile(r"kept in parts|measure in memory|set engine=|\(engine='memory'")
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert not advice.search(text), path
        if path.relative_to(SOURCE).as_posix() not in ENGINES:
            assert not kinds.search(text), path


def _borrowers() -> list[Path]:
    root = SOURCE.parents[1]
    return [
        path
        for folder in ("docs/_extensions", "benchmarks", "examples")
        for path in sorted((root / folder).rglob("*.py"))
    ]


@pytest.mark.parametrize("path", _borrowers(), ids=lambda path: path.name)
def test_what_the_site_and_the_benchmarks_import_exists(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cranfield":
            module = importlib.import_module(node.module)
            for name in node.names:
                if not hasattr(module, name.name):
                    importlib.import_module(f"{node.module}.{name.name}")


MOST_EXPORTS = 40


@pytest.mark.parametrize("stage", LINE)
def test_a_front_door_is_not_wide(stage):
    if stage != "cli":
        assert len(importlib.import_module(f"cranfield.{stage}").__all__) <= MOST_EXPORTS


def _packages(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for module in pkgutil.iter_modules(package.__path__):
        if module.ispkg:
            yield from _packages(importlib.import_module(f"{package.__name__}.{module.name}"))


def test_nothing_that_a_package_offers_has_the_name_of_a_module():
    # Otherwise ``import cranfield.measures.metric`` would find a function, and so would tools for documentation.
    packages = list(_packages(cranfield))
    names = {package.__name__.rpartition(".")[2] for package in packages[1:]}
    clashes = []
    for package in packages:
        modules = {module.name for module in pkgutil.iter_modules(package.__path__)}
        offered = getattr(package, "__all__", [name for name in vars(package) if not name.startswith("_")])
        for name in offered:
            if not inspect.ismodule(getattr(package, name)) and name in modules | names:
                clashes.append(f"{package.__name__}.{name}")
    assert clashes == []


def test_a_class_name_has_one_meaning():
    meanings = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        for node in _nodes(path):
            if isinstance(node, ast.ClassDef):
                meanings[node.name].add(f"a class in {path.relative_to(SOURCE)}")
        # A type alias, such as ``Groups = Mapping[Any, Any]``, may be defined in several files if it is the same.
        for name, value in re.findall(r"^([A-Z][a-z]\w*) = (.+)", path.read_text(), re.MULTILINE):
            meanings[name].add(value)
    assert {name: several for name, several in meanings.items() if len(several) > 1} == {}


def test_a_local_name_says_what_it_holds():
    vague = {"one", "found", "made", "asked", "told"}
    for path in [*SOURCE.rglob("*.py"), *(SOURCE.parents[1] / "benchmarks").rglob("*.py")]:
        names = [node for node in _nodes(path) if isinstance(node, ast.arg | ast.Name)]
        stored = {node.arg if isinstance(node, ast.arg) else node.id for node in names if not _is_read(node)}
        assert not stored & vague, path


def _is_read(node: ast.arg | ast.Name) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def test_importing_cranfield_imports_nothing_heavy():
    code = f"import sys, cranfield; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


FILES_OF_POLARS = {
    *(f"{verb}_{form}" for verb in ("read", "scan") for form in ("parquet", "csv", "ndjson", "ipc", "json", "excel")),
    *(f"{verb}_{form}" for verb in ("write", "sink") for form in ("parquet", "csv", "ndjson", "ipc", "json", "excel")),
    *("read_parquet_schema", "read_parquet_metadata", "read_csv_batched", "read_ipc_stream", "read_avro"),
}
# Bytes in memory have no file name that could be taken for a pattern.
IN_MEMORY = ("file.read_bytes()", "io.BytesIO(", 'b"')


def _calls_of_polars(path: Path) -> list[str]:
    found = []
    for call in (node for node in _nodes(path) if isinstance(node, ast.Call)):
        if isinstance(call.func, ast.Attribute) and call.func.attr in FILES_OF_POLARS and call.args:
            first = ast.get_source_segment(path.read_text(), call.args[0]) or ""
            if not (first == "data" or first.startswith(IN_MEMORY)):
                found.append(f"{path.name}: {call.func.attr}({first})")
    return found


def test_polars_opens_files_in_one_module_only_which_never_takes_a_name_for_a_pattern():
    found = [call for path in SOURCE.rglob("*.py") if path.name != "_polars.py" for call in _calls_of_polars(path)]
    assert found == []


def test_polars_is_given_no_name_of_a_file():
    # An open file is certainly the right one; Polars may take a name for a pattern, an address or a home folder.
    text = (SOURCE / "_polars.py").read_text()
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    given = {
        ast.get_source_segment(text, call.args[0])
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr in FILES_OF_POLARS
    }
    assert given == {"files", "_opened(source)", "_opened(path)", "target", "file"}
