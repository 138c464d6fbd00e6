"""How many small faults the tests find: a random sample of mutants, and for each the tests that run its line.

    python -m venv mutants && mutants/bin/pip install -e '.[test]' coverage pytest-cov
    mutants/bin/python benchmarks/mutants.py measures comparisons --count 400 --seed 1

A mutant is one change of a comparison, an arithmetic or boolean operator, a constant or a returned value. The tests are
run once under coverage, which tells the tests that reach each line; the map is kept (``--map``) and used again. Each
mutant is then made in a copy of the project, and its tests are run until one fails. What survives is printed with its
place, as is what took longer than ``--seconds``.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/cranfield")

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: the file, the place of the node in the walk of its tree, its line, and the change in words."""

    path: Path
    place: int
    line: int
    change: str

    def source(self, before: str) -> str:
        """Return the source of the file with the change."""
        tree = ast.parse(before)
        node = list(ast.walk(tree))[self.place]
        replacement = changed(node)
        assert replacement is not None
        vars(node).update(vars(replacement))
        node.__class__ = replacement.__class__
        return ast.unparse(ast.fix_missing_locations(tree))

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.change}"


def changed(node: ast.AST) -> ast.AST | None:
    """Return a node with one change, or None for a node that has none."""
    new = copy.copy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in OPERATORS:
        new.ops = [OPERATORS[type(new.ops[0])](), *new.ops[1:]]
    elif isinstance(new, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(new.op) in OPERATORS:
        new.op = OPERATORS[type(new.op)]()
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        new.value = new.value + 1
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        return new.operand
    elif isinstance(new, ast.Return) and not isinstance(new.value, ast.Constant | None):
        new.value = ast.Constant(None)
    else:
        return None
    return new


def mutants_of(path: Path, project: Path) -> Iterator[Mutant]:
    """Give every mutant of a file; annotations are left alone, since nothing is computed by them."""
    tree = ast.parse((project / path).read_text(encoding="utf-8"))
    stated = {
        id(node)
        for owner in ast.walk(tree)
        for part in (getattr(owner, "annotation", None), getattr(owner, "returns", None))
        if part is not None
        for node in ast.walk(part)
    }
    for place, node in enumerate(ast.walk(tree)):
        new = None if id(node) in stated else changed(node)
        if new is not None:
            before, after = (" ".join(ast.unparse(ast.fix_missing_locations(one)).split()) for one in (node, new))
            yield Mutant(path, place, node.lineno, f"{before[:90]}  →  {after[:90]}")  # type: ignore[attr-defined]


def pytest(arguments: list[str], project: Path, seconds: float | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run pytest on the source of a project, without what it keeps between runs."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(project / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=project, env=environment, timeout=seconds, capture_output=True, check=False)


def covered(data_file: Path, tests: list[str], project: Path) -> dict[tuple[Path, int], set[str]]:
    """Return the tests that run each line, from a kept map or from a run of the tests; line 0 is the whole file."""
    if not data_file.exists():
        os.environ["COVERAGE_FILE"] = str(data_file)
        pytest(["--cov=cranfield", "--cov-context=test", "--cov-report=", *tests], project)
    data = CoverageData(str(data_file))
    data.read()
    tests_of: dict[tuple[Path, int], set[str]] = {}
    for name in data.measured_files():
        path = SOURCE / name.rpartition(f"{SOURCE}/")[2]
        for line, contexts in data.contexts_by_lineno(name).items():
            chosen = {context.rpartition("|")[0] for context in contexts} - {""}
            tests_of.setdefault((path, line), set()).update(chosen)
            tests_of.setdefault((path, 0), set()).update(chosen)
    return tests_of


def verdict(mutant: Mutant, tests: set[str], project: Path, seconds: float) -> str:
    """Return whether the tests find a mutant."""
    if not tests:
        return "not covered"
    file = project / mutant.path
    before = file.read_text(encoding="utf-8")
    # The tests of the same stage find most; they come first.
    order = sorted(tests, key=lambda test: (mutant.path.parts[2] not in test, test))
    try:
        file.write_text(mutant.source(before), encoding="utf-8")
        return "survived" if pytest(["-x", *order], project, seconds).returncode == 0 else "killed"
    except subprocess.TimeoutExpired:
        return "out of time"
    finally:
        file.write_text(before, encoding="utf-8")


def main() -> None:
    """Print the verdict on each mutant of a sample, and how many there are of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", help="stages or files under src/cranfield: measures, _rounding.py")
    parser.add_argument("--count", type=int, default=20, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which mutants")
    parser.add_argument("--seconds", type=float, default=120.0, help="the most time for one mutant")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="the tests to choose from")
    parser.add_argument("--map", type=Path, default=Path(tempfile.gettempdir()) / "cranfield-mutants.coverage")
    options = parser.parse_args()
    paths = sorted(
        path.relative_to(ROOT)
        for package in options.packages
        for path in ([ROOT / SOURCE / package] if package.endswith(".py") else (ROOT / SOURCE / package).rglob("*.py"))
    )
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns(".git", "__pycache__", ".*_cache"))
        everything = [mutant for path in paths for mutant in mutants_of(path, project)]
        sample = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
        tests_of = covered(options.map.resolve(), options.tests, project)
        for mutant in sample:
            # A line that runs when the module is imported belongs to no test: any test of the file may find it.
            tests = tests_of.get((mutant.path, mutant.line)) or tests_of.get((mutant.path, 0), set())
            outcome = verdict(mutant, tests, project, options.seconds)
            counts[outcome] += 1
            print(f"{outcome:12}{len(tests):5} tests  {mutant}", flush=True)
    print(f"{len(sample)} of {len(everything):,} mutants: " + ", ".join(f"{n} {word}" for word, n in counts.items()))


if __name__ == "__main__":
    main()
