from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from cranfield._code_hash import made_of

_FACTOR = 2


def _helped(x):
    return _FACTOR * x


def _closing_over(table):
    def similarity(a, b):
        return table[a] @ table[b]

    return similarity


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: np.mean(x), lambda x: np.max(x)),
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x, k=1: x * k, lambda x, k=2: x * k),
        (lambda x, *, k=1: x * k, lambda x, *, k=2: x * k),
        (lambda x: sorted(x, key=lambda y: y.a), lambda x: sorted(x, key=lambda y: y.b)),
        (_closing_over(np.eye(2)), _closing_over(np.ones((2, 2)))),
        (np.eye(2), np.eye(2, dtype=np.float32)),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (None, 0),
    ],
)
def test_a_change_of_what_a_function_or_table_is_made_of_is_seen(one, other):
    assert made_of(one) == made_of(one)
    assert made_of(one) != made_of(other)


def test_a_change_of_what_a_function_calls_in_its_module_is_seen(monkeypatch):
    before = made_of(lambda x: _helped(x))
    monkeypatch.setitem(globals(), "_FACTOR", 3)
    assert made_of(lambda x: _helped(x)) != before


def test_a_function_that_calls_itself_has_a_hash():
    def down(n):
        return down(n - 1) if n else 0

    assert made_of(down) == made_of(down)


def test_what_cannot_be_told_is_never_known():
    hidden = (one for one in [1])
    assert made_of(lambda: hidden) != made_of(lambda: hidden)


def test_another_process_finds_the_same_hash():
    told = "import numpy as np; from cranfield._code_hash import made_of; t = np.eye(3)\n"
    told += "print(made_of(lambda a, b, k='x': t[a] @ t[b] + len(k)))"
    found = {subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(found) == 1
    assert found != {""}
