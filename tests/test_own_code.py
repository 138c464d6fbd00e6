"""Code that a spelling names: found and hashed without being imported, and imported only where it is allowed."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import cranfield as cf
from cranfield._errors import OwnCodeError
from cranfield._own_code import (
    allowing,
    check_form,
    code_hash,
    imported,
    may_be_called,
    names_code,
    source_hash,
    takes_parameter,
)
from cranfield.recommenders import recommender

MODULE = '''
from pathlib import Path
Path(__file__).with_name("imported").touch()
from helping import power

class Mine:
    """A system."""
    def __init__(self, k=5, seed=0):
        self.k, self.seed = k, seed
    def fit(self, train):
        return self
    def score(self, users):
        return power(self.k) / 0
    class Inner:
        pass

word = "text"
'''


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "own_module.py").write_text(MODULE)
    (tmp_path / "helping.py").write_text("def power(k):\n    return k\n")
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('never imported')\n")
    (package / "deep.py").write_text("from . import other\nfrom .other import x\nclass A:\n    pass\n")
    (package / "other.py").write_text("x = 1\n")
    return tmp_path


def _is_imported(folder):
    return (folder / "imported").exists()


def test_names_of_code_have_a_colon():
    assert names_code("a.b:C(k=5)@10")
    assert not names_code("nDCG(gain=exp)@10")
    assert not names_code(None)


def test_code_is_not_imported_unless_it_is_allowed(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    assert not may_be_called("own_module:Mine")
    with pytest.raises(cf.SettingError, match="'own_module:Mine' names code, which runs only if you allow it"):
        recommender("own_module:Mine")
    with allowing(["own_module:word"], folder), pytest.raises(cf.SettingError, match="runs only if you allow it"):
        recommender("own_module:Mine")
    assert not _is_imported(folder)


def test_what_is_allowed_is_imported_with_its_parameters(folder):
    with allowing(["own_module:Mine(k=7)"], folder):
        made = recommender("own_module:Mine(k=7)", seed=3)
    assert (made.k, made.seed) == (7, 3)
    assert "own_module" not in sys.modules
    assert str(folder) not in sys.path


def test_what_runs_is_what_the_file_says_now(folder):
    for k in (1, 2):
        (folder / "helping.py").write_text(f"def power(k):\n    return {k}\n")
        with allowing(["helping:power"], folder):
            assert imported("helping:power")(9) == k


def test_an_installed_module_whose_source_changed_since_it_was_imported_is_refused(folder, tmp_path, monkeypatch):
    elsewhere = tmp_path / "site-packages"
    elsewhere.mkdir()
    (elsewhere / "settled.py").write_text("class A:\n    fit = score = print\n")
    monkeypatch.syspath_prepend(elsewhere)
    with allowing(["settled:A"], folder):
        recommender("settled:A")
    (elsewhere / "settled.py").write_text("class A:\n    fit = score = repr\n")
    message = "settled:A has changed since it was imported; restart Python"
    with pytest.raises(cf.SettingError, match=message), allowing(["settled:A"], folder):
        recommender("settled:A")
    monkeypatch.delitem(sys.modules, "settled")


def test_a_module_that_was_imported_before_stays_as_it_was(folder, monkeypatch):
    monkeypatch.syspath_prepend(folder)
    import helping

    with allowing(["own_module:Mine"], folder):
        imported("own_module:Mine")
    assert sys.modules["helping"] is helping
    monkeypatch.delitem(sys.modules, "helping")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("os:system", "os:system is not a class with fit.train. and score.users."),
        ("own_module:word", "own_module:word is not a class with fit"),
        ("own_module:Mine.Inner", "own_module:Mine.Inner is not a class with fit"),
        ("own_module:Mien", "the module 'own_module' has no 'Mien'; did you mean 'Mine'"),
        ("no_module:Mine", "there is no module 'no_module' on Python's path or in "),
        ("own_package.nothing:A", "there is no module 'own_package.nothing'"),
        ("own_module:Mine(q=5)", "own_module:Mine has no parameter 'q'; known: k, seed"),
        ("own_module.py:Mine", "'own_module.py:Mine' does not name code; write package.module:Name"),
        ("own-module:Mine", "'own-module:Mine' does not name code"),
    ],
)
def test_what_is_no_system_is_refused_before_it_is_called(folder, name, message):
    with pytest.raises(cf.SettingError, match=message) as caught, allowing([name], folder):
        recommender(name)
    assert "\n" not in str(caught.value)


def test_what_goes_wrong_inside_is_told_with_file_and_line(folder):
    with pytest.raises(OwnCodeError) as caught, allowing(["own_module:Mine"], folder):
        recommender("own_module:Mine").score([0])
    line = MODULE.splitlines().index("        return power(self.k) / 0") + 1
    assert str(caught.value) == (
        f"{folder / 'own_module.py'}, line {line}, in score: ZeroDivisionError: division by zero "
        "(return power(self.k) / 0)"
    )
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = (\n", "line 1: SyntaxError: '.' was never closed"),
        ("import not_there_at_all\n", "line 1, in <module>: ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("import sys\nsys.exit(3)\n", "line 2, in <module>: SystemExit: 3"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_with_its_line(folder, source, message):
    (folder / "own_module.py").write_text(source)
    with pytest.raises(OwnCodeError, match=message), allowing(["own_module:Mine"], folder):
        recommender("own_module:Mine")


def test_errors_from_elsewhere_stay_what_they_are(folder):
    with pytest.raises(KeyError), allowing(["own_module:Mine"], folder):
        {}["nothing"]


def test_the_hash_follows_the_source_and_what_it_imports_but_not_comments(folder):
    first = source_hash("own_module:Mine(k=5)", folder)
    (folder / "own_module.py").write_text(MODULE + "# a remark\n")
    assert source_hash("own_module:Mine(k=6)", folder) == first
    (folder / "helping.py").write_text("def power(k):\n    return k + 1\n")
    assert source_hash("own_module:Mine", folder) != first
    assert not _is_imported(folder)


def test_the_hash_of_a_package_follows_its_modules(folder):
    first = source_hash("own_package.deep:A", folder)
    (folder / "own_package" / "other.py").write_text("x = 2\n")
    assert source_hash("own_package.deep:A", folder) != first


def test_whether_a_class_takes_a_seed_is_read_from_its_source(folder):
    assert takes_parameter("own_module:Mine", "seed", folder)
    assert not takes_parameter("own_module:Mine", "depth", folder)
    assert not takes_parameter("own_package.deep:A", "seed", folder)
    assert not _is_imported(folder)


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
    assert code_hash(one) == code_hash(one)
    assert code_hash(one) != code_hash(other)


def test_a_change_of_what_a_function_calls_in_its_module_is_seen(monkeypatch):
    before = code_hash(lambda x: _helped(x))
    monkeypatch.setitem(globals(), "_FACTOR", 3)
    assert code_hash(lambda x: _helped(x)) != before


def test_a_function_that_calls_itself_has_a_hash():
    def down(n):
        return down(n - 1) if n else 0

    assert code_hash(down) == code_hash(down)


def test_what_cannot_be_told_is_never_known():
    hidden = (one for one in [1])
    assert code_hash(lambda: hidden) != code_hash(lambda: hidden)


@pytest.mark.slow  # the next test checks the same for a class
def test_another_process_finds_the_same_hash():
    told = "import numpy as np; from cranfield._own_code import code_hash; t = np.eye(3)\n"
    told += "print(code_hash(lambda a, b, k='x': t[a] @ t[b] + len(k)))"
    found = {subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout for _ in range(2)}
    assert len(found) == 1
    assert found != {""}


_CLASS = """
from dataclasses import dataclass
import numpy as np
from cranfield._own_code import code_hash
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

print(code_hash(Mine))
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


def test_a_name_with_a_file_ending_is_refused():
    with pytest.raises(cf.SettingError, match=r"'mine.py:Mine' does not name code; write package.module:Name"):
        check_form("mine.py:Mine(k=5)")
