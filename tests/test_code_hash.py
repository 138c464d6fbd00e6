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


@pytest.mark.slow  # the next test checks the same for a class
def test_another_process_finds_the_same_hash():
    told = "import numpy as np; from cranfield._code_hash import made_of; t = np.eye(3)\n"
    told += "print(made_of(lambda a, b, k='x': t[a] @ t[b] + len(k)))"
    found = {subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(found) == 1
    assert found != {""}


_CLASS = """
from dataclasses import dataclass
import numpy as np
from cranfield._code_hash import made_of
from cranfield.recommenders import Model, setting

class Parent(Model):
    def _score(self, users):
        return np.tile(self._scores, (len(users), {tiles}))

@dataclass
class Mine(Parent):
    weight: float = setting(1.0, low=0)
    kind = "{kind}"

    def _fit(self, train):
        self._scores = train.item_counts * {factor}

    @property
    def double(self):
        return self.weight * 2

    @staticmethod
    def half(x):
        return x / {part}

print(made_of(Mine))
"""
_USUAL = {"tiles": 1, "kind": "a", "factor": 2, "part": 2}


def _hashes_of_class(*changes):
    """Return the hash of the class under each of some changes, in one new process."""
    texts = [_CLASS.format(**{**_USUAL, **change}) for change in changes]
    code = f"for text in {texts!r}: exec(text, {{'__name__': '__main__'}})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_a_class_has_one_hash_in_every_process_and_another_when_a_method_or_a_value_changes():
    changes = ({"tiles": 2}, {"kind": "b"}, {"factor": 3}, {"part": 3})
    usual, *others = _hashes_of_class({}, *changes)
    assert len({usual, *others}) == 5
    assert _hashes_of_class({}) == [usual]
