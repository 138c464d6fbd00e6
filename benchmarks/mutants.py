"""How many small faults the tests find: a random sample of mutants, and for each the tests that run its line.

    python -m venv mutants && mutants/bin/pip install -e '.[test]' coverage pytest-cov
    mutants/bin/python benchmarks/mutants.py measures comparisons --count 400 --seed 1

A mutant is one change of a comparison, an arithmetic or boolean operator, a constant or a returned value. The tests are
run once under coverage, which tells which tests reach each line and how long each takes; this map is kept (``--map``)
and used again. Each mutant is then made in a copy of the project, and the tests of its line are run, the fastest of its
stage first, until one fails. Tests that are too slow to run together within half of ``--seconds`` are left out, so that
a mutant only runs out of time if it hangs. In the end, the tests that found a mutant are run on the copy without a
mutant: a test that fails there has found nothing. ``--skip 100`` continues after the first hundred of the sample, and
``--only`` repeats the mutants whose description contains a text.

It forks, so it only runs on Linux and macOS: libraries are imported once, and every mutant imports only cranfield.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import copy
import gc
import importlib
import os
import py_compile
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from coverage import CoverageData
from hypothesis import Phase, settings

ROOT = Path(__file__).parents[1]
SOURCE = Path("src/cranfield")
LIBRARIES = ("numpy", "polars")
FIRST = 25
MEMORY = 8 << 30

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: the file, the position of the node in the walk of its tree, its line, and the change in words.

    ``imported`` means that the line runs when the module is imported, rather than when a function is called, and
    ``compiled`` that numba compiles the file, so that coverage does not see its lines run.
    """

    path: Path
    place: int
    line: int
    change: str
    imported: bool
    compiled: bool

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
    """Return a node with one change, or None if it cannot be changed."""
    new = copy.copy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in OPERATORS:
        new.ops = [OPERATORS[type(new.ops[0])](), *new.ops[1:]]
    elif isinstance(new, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(new.op) in OPERATORS:
        new.op = OPERATORS[type(new.op)]()
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int | float):
        # Adding 1 may not change a large float.
        new.value = new.value + 1 if new.value + 1 != new.value else new.value * 2
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        return new.operand
    elif isinstance(new, ast.Return) and not isinstance(new.value, ast.Constant | None):
        new.value = ast.Constant(None)
    else:
        return None
    return new


def mutants_of(path: Path, project: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file; annotations are skipped, because nothing is computed from them."""
    text = (project / path).read_text(encoding="utf-8")
    tree, compiled = ast.parse(text), "from numba import" in text
    stated = {
        id(node)
        for owner in ast.walk(tree)
        for part in (getattr(owner, "annotation", None), getattr(owner, "returns", None))
        if part is not None
        for node in ast.walk(part)
    }
    called = {
        id(node)
        for owner in ast.walk(tree)
        if isinstance(owner, ast.FunctionDef | ast.Lambda)
        for part in (owner.body if isinstance(owner.body, list) else [owner.body])
        for node in ast.walk(part)
    }
    for place, node in enumerate(ast.walk(tree)):
        new = None if id(node) in stated else changed(node)
        if new is not None:
            before, after = (" ".join(ast.unparse(ast.fix_missing_locations(tree)).split()) for tree in (node, new))
            change = f"{before[:90]}  →  {after[:90]}"
            yield Mutant(path, place, node.lineno, change, id(node) not in called, compiled)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Coverage:
    """The tests that run each line, with line 0 for the whole file, and the seconds that each test takes."""

    tests: dict[tuple[Path, int], set[str]]
    seconds: dict[str, float]

    @classmethod
    def read(cls, data_file: Path) -> Coverage:
        """Read what ``cover`` wrote."""
        data = CoverageData(str(data_file))
        data.read()
        output = durations_file(data_file).read_text(encoding="utf-8").splitlines()
        # A test that fails without a mutant would find every one.
        failed = {line.split(" ")[1] for line in output if line.startswith(("FAILED ", "ERROR "))}
        tests: dict[tuple[Path, int], set[str]] = {}
        for name in data.measured_files():
            path = SOURCE / name.rpartition(f"{SOURCE}/")[2]
            for line, contexts in data.contexts_by_lineno(name).items():
                chosen = {context.rpartition("|")[0] for context in contexts} - {""} - failed
                tests.setdefault((path, line), set()).update(chosen)
                tests.setdefault((path, 0), set()).update(chosen)
        seconds: Counter[str] = Counter()
        for report in output:
            match = re.match(r"([\d.]+)s (?:setup|call|teardown) +(.+)", report)
            if match and match[2] not in failed:
                seconds[match[2]] += float(match[1])  # type: ignore[assignment]
        return cls(tests, dict(seconds))

    def chosen(self, mutant: Mutant, most: float) -> list[str]:
        """Return the tests of a mutant, as many as fit in ``most`` seconds, the fast ones of its own stage first."""
        # A line that runs when the module is imported belongs to no test, so any test of the file may find it.
        line = 0 if mutant.imported else mutant.line
        tests = self.tests.get((mutant.path, line)) or self.tests.get((mutant.path, 0), set())
        stage, module = mutant.path.parts[2], mutant.path.stem
        if mutant.compiled:
            tests = {test for test in self.seconds if test.startswith(f"tests/{stage}/")}

        def cost(test: str) -> float:
            nearness = 1 if module in test else 3 if stage in test else 10
            return nearness * (0.02 + self.seconds.get(test, 0.0))

        order, total = [], 0.0
        for test in sorted(sorted(tests), key=cost):
            total += self.seconds.get(test, 0.0)
            if total > most and order:
                break
            order.append(test)
        return order


def durations_file(data_file: Path) -> Path:
    """Return the file next to a map that holds how long each test takes."""
    # Coverage removes files whose names start with that of its own file.
    return data_file.with_name(f"durations-of-{data_file.name}")


def cover(data_file: Path, tests: list[str], project: Path) -> None:
    """Run the tests once, and record which lines each runs and how long it takes."""
    options = ["-q", "-p", "no:cacheprovider", "-vv", "--durations=0"]
    coverage = ["--cov=cranfield", "--cov-context=test", "--cov-report="]
    environment = {**os.environ, "PYTHONPATH": str(project / "src"), "COVERAGE_FILE": str(data_file)}
    with durations_file(data_file).open("wb") as output:
        command = [sys.executable, "-m", "pytest", *options, *coverage, *tests]
        subprocess.run(command, cwd=project, env=environment, stdout=output, check=False)


def prepare(project: Path) -> None:
    """Do once what every mutant would repeat: compile the project, and import the libraries."""
    # A mutant may have the length and the age of its file, so bytecode is matched by the hash of the source.
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(project / SOURCE, quiet=2, force=True, invalidation_mode=mode)
    os.environ["PYTHONPATH"] = str(project / "src")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    sys.path.insert(0, str(project / "src"))
    for name in LIBRARIES:
        importlib.import_module(name)
    gc.freeze()


class FirstFailure:
    """A pytest plugin that writes the name of a failing test to a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_sessionstart(self) -> None:
        """Keep hypothesis from looking for a simpler example: any failing one will do."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.get_profile("cranfield"), phases=phases)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the name of a failing test."""
        if report.failed:
            self.file.write_text(report.nodeid, encoding="utf-8")


def run_tests(tests: list[str], project: Path) -> None:
    """Run tests silently in this process until one fails, and end it."""
    os.setsid()
    os.chdir(project)
    # A mutant that allocates without end must not take the memory of other processes.
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    temporary = f"--basetemp={project.parent / 'temporary'}"
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:cov", temporary]
    os._exit(pytest.main([*options, *tests], plugins=[FirstFailure(project.parent / "failed")]))


def outcome_of(tests: list[str], project: Path, seconds: float) -> str:
    """Return whether tests find a fault in a project, run in a separate process."""
    (project.parent / "failed").unlink(missing_ok=True)
    end = time.monotonic() + seconds
    child = os.fork()
    if not child:
        run_tests(tests, project)
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "survived" if status == 0 else "killed"
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "out of time"


def finder(tests: list[str], project: Path) -> str:
    """Return the test that failed in the last run, or the first if the project could not be imported."""
    file = project.parent / "failed"
    return file.read_text(encoding="utf-8") if file.exists() else tests[0]


def verdict(mutant: Mutant, tests: list[str], project: Path, seconds: float) -> str:
    """Return whether the tests find a mutant: first a few of them, which find most mutants, and then the others."""
    if not tests:
        return "not covered"
    # Compiling a mutant takes longer than interpreting it in the few small tests that find it.
    os.environ["NUMBA_DISABLE_JIT"] = str(int(mutant.compiled))
    file = project / mutant.path
    before = file.read_text(encoding="utf-8")
    try:
        file.write_text(mutant.source(before), encoding="utf-8")
        outcome = outcome_of(tests[:FIRST], project, seconds)
        if outcome == "survived" and tests[FIRST:]:
            outcome = outcome_of(tests[FIRST:], project, seconds)
        return outcome
    finally:
        file.write_text(before, encoding="utf-8")


def main() -> None:
    """Print the verdict on each mutant of a sample, and the number of each verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="+", help="stages or files under src/cranfield: measures, _numbers.py")
    parser.add_argument("--count", type=int, default=20, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which mutants")
    parser.add_argument("--seconds", type=float, default=120.0, help="the most time for one mutant")
    parser.add_argument("--skip", type=int, default=0, help="how many mutants of the sample to leave out at its start")
    parser.add_argument("--only", default="", help="a text that a mutant's description must hold")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="the tests to choose from")
    parser.add_argument("--map", type=Path, default=Path(tempfile.gettempdir()) / "cranfield-mutants.coverage")
    options = parser.parse_args()
    paths = sorted(
        path.relative_to(ROOT)
        for package in options.packages
        for path in ([ROOT / SOURCE / package] if package.endswith(".py") else (ROOT / SOURCE / package).rglob("*.py"))
    )
    counts: Counter[str] = Counter()
    finders: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "project"
        shutil.copytree(ROOT, project, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache"))
        everything = [mutant for path in paths for mutant in mutants_of(path, project)]
        sample = random.Random(options.seed).sample(everything, min(options.count, len(everything)))
        data_file = options.map.resolve()
        if not data_file.exists():
            cover(data_file, options.tests, project)
        coverage = Coverage.read(data_file)
        prepare(project)
        for mutant in sample[options.skip :]:
            if options.only not in str(mutant):
                continue
            tests = coverage.chosen(mutant, options.seconds / 2)
            outcome = verdict(mutant, tests, project, options.seconds)
            counts[outcome] += 1
            killer = finder(tests, project) if outcome == "killed" else ""
            finders.update({killer} - {""})
            print(f"{outcome:12}{len(tests):5} tests  {mutant}  {killer}", flush=True)
        if finders and outcome_of(sorted(finders), project, seconds=1800) != "survived":
            print(f"{finder(sorted(finders), project)} fails without a mutant: what it found does not count")
    print(f"{counts.total()} of {len(everything):,} mutants: " + ", ".join(f"{n} {word}" for word, n in counts.items()))


if __name__ == "__main__":
    main()
