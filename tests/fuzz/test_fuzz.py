"""Whatever a file holds, reading it gives data or one line that says what is wrong."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from pathlib import Path

import pytest

if not sys.platform.startswith("linux"):
    pytest.skip("the limits of a child are those of Linux", allow_module_level=True)


def _script():
    spec = importlib.util.spec_from_file_location("cranfield_fuzz", Path(__file__).parent / "fuzz.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


FUZZ = _script()
CASES = sorted((Path(__file__).parent / "cases").iterdir())


def _problems(findings):
    return [f"{one['reader']}, {one['name']}: {one['problem']}" for one in findings.values()]


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_what_was_found_once_stays_mended(case, tmp_path):
    reader, _, name = case.name.partition("--")
    path = tmp_path / name
    path.write_bytes(case.read_bytes())
    for way in range(6):  # the reader draws its options
        assert FUZZ.complaint(lambda: FUZZ.READERS[reader].read(path, random.Random(way))) is None  # noqa: B023


@pytest.mark.parametrize("reader", ["ratings", "runs", "judgments", "evaluation"])
def test_parquet_that_is_cut_short_is_one_line(reader, tmp_path):
    for seed in FUZZ.READERS[reader].seeds():
        if not seed.name.endswith(".parquet"):
            continue
        for size in (4, 5, 8, 12, len(seed.content) // 3, len(seed.content) // 2, len(seed.content) - 9):
            # The footer says where everything is: if it is kept, missing data are only noticed when they are read.
            for end in (b"", seed.content[-8 - int.from_bytes(seed.content[-8:-4], "little") :]):
                path = tmp_path / seed.name
                path.write_bytes(seed.content[:size] + end)
                for way in range(3):
                    asked = random.Random(way)
                    assert FUZZ.complaint(lambda: FUZZ.READERS[reader].read(path, asked)) is None  # noqa: B023


def test_damaged_files_are_read_or_refused_in_one_line():
    assert _problems(FUZZ.fuzz(list(FUZZ.READERS), rounds=8)) == []


@pytest.mark.hours
def test_many_damaged_files_are_read_or_refused_in_one_line():
    seconds = float(os.environ.get("CRANFIELD_FUZZ_SECONDS", "600"))
    seed = int(os.environ.get("CRANFIELD_FUZZ_SEED", "1"))
    assert _problems(FUZZ.fuzz(list(FUZZ.READERS), seconds=seconds, seed=seed)) == []
