"""Hooks and fixtures shared by all tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from _pytest.doctest import DoctestItem, DoctestModule
from hypothesis import settings
from hypothesis import strategies as st

import cranfield
from cranfield import Ratings
from cranfield.assessments import SCENARIOS
from cranfield.comparisons.p_values import CORRECTIONS, SIGNIFICANCE_TESTS
from cranfield.data import filters
from cranfield.judgments import Judgments, judge
from cranfield.measures.averages import AVERAGES
from cranfield.metrics.definition import METRICS
from cranfield.metrics.dialects import TOOLS
from cranfield.metrics.gains import GAINS
from cranfield.rankings import read_run
from cranfield.recommenders import SYSTEMS
from cranfield.recommenders.networks import NetworkModel
from cranfield.splits import registry as splits
from cranfield.tables.spark import has_java, spark_session

REGISTRIES = (
    METRICS,
    AVERAGES,
    GAINS,
    TOOLS,
    SYSTEMS,
    SCENARIOS,
    filters.registry,
    splits,
    SIGNIFICANCE_TESTS,
    CORRECTIONS,
)

SETTINGS = dict(vars(cranfield.settings))

settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=200)
settings.register_profile("cranfield", deadline=None, derandomize=True, max_examples=12)
settings.load_profile("cranfield")


def pytest_configure(config):
    """Let workers and processes store bytecode in pytest's cache if it may not be stored next to the code.

    Python images often forbid that (PYTHONDONTWRITEBYTECODE), so every process would compile the package again.
    """
    cache = getattr(config, "cache", None)
    if os.environ.get("PYTHONDONTWRITEBYTECODE") and cache is not None and not hasattr(config, "workerinput"):
        del os.environ["PYTHONDONTWRITEBYTECODE"]
        os.environ["PYTHONPYCACHEPREFIX"] = str(cache.mkdir("bytecode"))
    if getattr(config.option, "numprocesses", None):
        # There is one worker per core, so more threads would only wait for each other.
        for library in ("OPENBLAS_NUM", "OMP_NUM", "POLARS_MAX"):
            os.environ.setdefault(f"{library}_THREADS", "1")
    if not config.getoption("--hypothesis-profile", None):
        # Hypothesis would scan every module of the package for constants to try, which takes seconds per worker.
        with suppress(ImportError):  # in old versions
            from hypothesis.internal.conjecture import providers

            providers._get_local_constants = lambda: providers._local_constants


LONGEST_FIRST = ("experiments", "reports", "cli", "studies", "assessments", "oracles")
"""The folders whose files take longest; if one of them started last, the other workers would wait for it at the end."""


TOGETHER = ("tests/assessments", "tests/studies")
"""The folders whose files share slow fixtures."""


def pytest_xdist_make_scheduler(config, log):
    """Give the tests of a file, or of a folder in `TOGETHER`, to one worker, so that shared fixtures are made once.

    ``--dist worksteal`` distributes single tests, which is faster for a few files whose tests are slow.
    """
    if config.getoption("dist") == "worksteal":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            folder = file.rpartition("/")[0]
            return folder if folder in TOGETHER else file

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Do not look for doctests in the tests: that takes a second per worker."""
    collectors = yield
    return [collector for collector in collectors if not isinstance(collector, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Let every other worker read the files from last to first.

    In a fresh clone, each of two workers then compiles half of the files and finds the other half compiled.
    """
    report = yield
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    if worker % 2 and isinstance(collector, pytest.Session | pytest.Directory) and report.result:
        report.result.reverse()
    return report


def pytest_collection_modifyitems(items):
    """Run the slowest files first and doctests last; mark the tests that try a neural system or Spark.

    Doctests come last because fixtures do not undo what they register.
    """
    folders = {folder: place for place, folder in enumerate(LONGEST_FIRST)}
    items.sort(
        key=lambda item: (
            isinstance(item, DoctestItem), folders.get(item.path.parent.name, len(folders)), item.path,
        )
    )  # fmt: skip
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        tried = {str(value).split("(")[0] for value in parameters} if item.path.name in LAWS else set()
        if tried & NEURAL:
            item.add_marker(pytest.mark.neural)
        if "spark-als" in tried:
            item.add_marker(pytest.mark.spark)


LAWS = ("test_registry.py", "test_saving.py", "test_kernels.py", "test_truth.py")
"""The files whose tests try every system."""

NEURAL = {name for name, system in SYSTEMS.items() if issubclass(system, NetworkModel)}


def pytest_runtest_setup(item):
    """Skip tests that need JAX, or PySpark and Java, if these are not installed."""
    if item.get_closest_marker("spark") and not (find_spec("pyspark") and has_java()):
        pytest.skip("it needs PySpark and Java: pip install 'cranfield[spark]'")
    if item.get_closest_marker("neural") and not find_spec("jax"):
        pytest.skip("it needs JAX: pip install 'cranfield[neural]'")


@pytest.fixture(scope="session")
def spark():
    """Start one session for all tests, on two cores; sorting spills to disk after every 100,000 rows."""
    spilling = "spark.shuffle.spill.numElementsForceSpillThreshold"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYSPARK_PYTHON", raising=False)
        options = f"--driver-memory 2g --conf {spilling}=100000 --conf spark.ui.enabled=false"
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{options} pyspark-shell")
        session = spark_session("local[2]")
        session.conf.set("spark.sql.shuffle.partitions", "3")
        assert session.sparkContext.getConf().get(spilling) == "100000"
        yield session
        session.stop()


def _data_folder() -> Path:
    beside = Path(__file__).parents[2] / "shared" / "data"
    return Path(os.environ.get("CRANFIELD_DATA", beside))


@pytest.fixture(scope="session", autouse=True)
def _compiled_once(tmp_path_factory):
    """Cache what JAX compiles: for a small network, compiling takes longer than everything else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "jax"))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        yield


@pytest.fixture(scope="session", autouse=True)
def _files_in_memory():
    """Do not wait for the disk: it matters only in a power cut, and would double the time of experiments."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cranfield._files.os.fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _unchecked_charts():
    """Draw charts without checking each part against the schema; tests of figures use ``checked_charts`` instead."""
    with pytest.MonkeyPatch.context() as patch:
        if find_spec("altair"):
            patch.setattr("altair.utils.schemapi.DEBUG_MODE", False)
        yield


@pytest.fixture
def checked_charts(monkeypatch):
    """Check every part of a chart against the schema of Vega-Lite."""
    monkeypatch.setattr("altair.utils.schemapi.DEBUG_MODE", True)


@pytest.fixture(scope="session")
def without_drawing():
    """Return a context in which every figure is empty: drawing figures takes most of the time of a page."""

    @contextmanager
    def context():
        def empty(_, name=""):
            own = f'id="figure-{name}" ' if name else ""
            return lambda: f'<svg {own}xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>'

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("cranfield._figures.svg_later", empty)
            yield

    return context


@pytest.fixture
def undrawn(without_drawing):
    """Leave every figure empty, for tests that are about something else."""
    with without_drawing():
        yield


@pytest.fixture(scope="session", autouse=True)
def _small_images():
    """Draw images with few pixels: rendering a large image takes longer than everything else about a figure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cranfield._figures.PNG_SCALE", 0.25)
        yield


@pytest.fixture(autouse=True)
def _own_settings():
    """Restore the settings of the process: commands that run in it change them."""
    # A fixture with module scope may have changed them too.
    vars(cranfield.settings).update(SETTINGS)
    yield
    vars(cranfield.settings).update(SETTINGS)


@pytest.fixture(autouse=True)
def _any_machine(monkeypatch):
    """Print the same on any machine and in any terminal: no progress lines, and tables of the default width."""
    monkeypatch.setattr("cranfield._terminal._PATIENCE", float("inf"))
    monkeypatch.delenv("COLUMNS", raising=False)


def _copy_registries(patch):
    for registry in REGISTRIES:
        patch.setattr(registry, "_entries", dict(registry._entries))
        patch.setattr(registry, "_names", dict(registry._names))


@pytest.fixture(autouse=True)
def _own_registries(monkeypatch):
    """Undo what a test registers."""
    _copy_registries(monkeypatch)


@pytest.fixture(scope="module", autouse=True)
def _registries_of_a_file():
    """Undo what the fixtures of a file register."""
    with pytest.MonkeyPatch.context() as patch:
        _copy_registries(patch)
        yield


@pytest.fixture(scope="session")
def real_data():
    """Return a function that finds a real data file by name, and skips the test if there is none."""

    def find(name: str) -> Path:
        path = _data_folder() / name
        if not path.exists():
            pytest.skip(f"{name} is not here; set CRANFIELD_DATA to a folder that holds it")
        return path

    return find


@pytest.fixture
def killed_command(tmp_path):
    """Return a function that runs a command in child processes that are killed, and reports what became of them."""

    def kill(command: list[str], kind: str, argument: object, seed: int = 1) -> dict[str, object]:
        script = Path(__file__).parent / "killed.py"
        done = subprocess.run(
            [sys.executable, script, tmp_path / "home", kind, json.dumps(argument), str(seed), *command],
            capture_output=True,
            text=True,
            timeout=3600,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout)

    return kill


@pytest.fixture
def piped(tmp_path):
    """Return a function that makes a pipe with some bytes that can be read once, like ``<(...)`` in a shell."""
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")

    def pipe(content: bytes, name: str = "pipe") -> Path:
        path = tmp_path / name
        os.mkfifo(path)
        threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
        return path

    return pipe


# Small worlds of lists and test ratings, with ties, gaps and unknown items.
ITEMS = st.integers(0, 12)


@pytest.fixture(scope="session")
def worlds():
    """Draw (run, test): dictionaries of user → item → score or rating; some test users have no list."""
    scores = st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0, 3.0])
    lists = st.dictionaries(st.integers(0, 4), st.dictionaries(ITEMS, scores, min_size=1), min_size=1)
    profiles = st.dictionaries(ITEMS, st.integers(0, 5), min_size=1, max_size=9)
    return st.tuples(lists, st.dictionaries(st.integers(0, 5), profiles, min_size=1))


@pytest.fixture(scope="session")
def ratings_of():
    """Make ratings of a dictionary of user → item → rating."""

    def make(profiles):
        rows = [(user, item, value) for user, profile in profiles.items() for item, value in profile.items()]
        return Ratings.of(*(list(column) for column in zip(*rows)))

    return make


@pytest.fixture(scope="session")
def judged_of(ratings_of):
    """Meet a run (user → item → score) with a test set (user → item → rating)."""

    def make(run, test, threshold=1.0, ties="trec_eval", train=None, similarity=None):
        train = train if train is None or isinstance(train, Ratings) else ratings_of(train)
        run = read_run(run, name="run", ties=ties)
        return judge(run, Judgments.of(ratings_of(test), float(threshold)), train=train, similarity=similarity)

    return make


@pytest.fixture(scope="session")
def ranked():
    """Order a list as trec_eval does: by score, then by item id as text, both descending."""

    def order(scores):
        return sorted(scores, key=lambda item: (scores[item], str(item)), reverse=True)

    return order


@pytest.fixture(scope="session")
def same():
    """Assert equality to 1e-12, NaN being equal to NaN."""

    def check(found, expected, note=None):
        np.testing.assert_allclose(
            np.asarray(found, dtype=float), np.asarray(expected, dtype=float), rtol=1e-11, atol=1e-12, err_msg=str(note)
        )

    return check
