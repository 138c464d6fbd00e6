"""The user's own code, named as ``package.module:Name``: it is found, hashed, allowed and imported here.

An experiment file from a stranger could name any code. So a name is only imported inside `allowing`, which is entered
after the user has allowed it. Anything needed without permission, such as a hash, is read from the source, which is
never imported.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import pickle
import re
import secrets
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from cranfield._errors import CranfieldError, OwnCodeError, SettingError, nearest
from cranfield._registry import parse

_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def names_code(spelling: Any) -> bool:
    """Whether a spelling names code by its module, rather than something registered."""
    return isinstance(spelling, str) and ":" in spelling and ":" in parse(spelling).name


def check_form(spelling: str) -> None:
    """Refuse a name of code that does not have the right form."""
    name = parse(spelling).name
    if not _NAME.fullmatch(name) or name.partition(":")[0].endswith(".py"):
        raise SettingError(f"{name!r} does not name code; write package.module:Name, without .py")


@dataclass(frozen=True, eq=False)
class _Permission:
    """Which names may be imported, the folder searched for modules besides Python's path, and what was imported."""

    names: frozenset[str]
    folder: Path
    things: dict[str, Any] = field(default_factory=dict)


_PERMISSIONS: list[_Permission] = []


def may_be_called(spelling: Any) -> bool:
    """Whether what a spelling names may be called: it is registered, or it is allowed code."""
    return not names_code(spelling) or _permission(parse(spelling).name) is not None


def _permission(name: str) -> _Permission | None:
    return next((permission for permission in reversed(_PERMISSIONS) if name in permission.names), None)


@contextmanager
def allowing(spellings: Iterable[Any], folder: Path) -> Iterator[None]:
    """Allow the code named by some spellings to be imported and called.

    Modules are found on Python's path and in ``folder``. Those in the folder are imported again, so that the current
    files run, and forgotten afterwards. An error inside them becomes an `OwnCodeError` that names the file and the
    line.
    """
    names = frozenset(parse(spelling).name for spelling in spellings if names_code(spelling))
    if not names:
        yield
        return
    folder = folder.absolute()
    files: dict[str, Path] = {}
    for name in names:
        check_form(name)
        files |= _sources(name.partition(":")[0], folder)
    local = [name for name, file in files.items() if folder in file.parents and "site-packages" not in file.parts]
    before = {name: sys.modules.pop(name) for name in local if name in sys.modules}
    for name in names:
        if name.partition(":")[0] in local:
            _IMPORTED.pop(name, None)
    importlib.invalidate_caches()
    permission = _Permission(names, folder)
    _PERMISSIONS.append(permission)
    sys.path.append(str(folder))
    try:
        yield
    except (CranfieldError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        message = _message(error, {str(file) for file in files.values()})
        if message is None:
            raise
        raise OwnCodeError(message) from error
    finally:
        sys.path.remove(str(folder))
        _PERMISSIONS.remove(permission)
        for name in local:
            sys.modules.pop(name, None)
        sys.modules |= before


def _message(error: BaseException, files: set[str]) -> str | None:
    """Return where in the user's own files an error was raised, with its message; None if it was not raised there."""
    summary = f"{type(error).__name__}{f': {error}' if str(error) else ''}"
    if isinstance(error, SyntaxError) and error.filename in files:
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    if not frames:
        return None
    last = frames[-1]
    line = f" ({last.line})" if last.line else ""
    return f"{last.filename}, line {last.lineno}, in {last.name}: {summary}{line}"


def imported(name: str) -> Any:
    """Return the object that a name of code refers to, importing it if that is allowed, or say what is missing."""
    check_form(name)
    module_name, _, attribute = name.partition(":")
    permission = _permission(name)
    if permission is None:
        raise SettingError(
            f"{name!r} names code, which runs only if you allow it; in an experiment, give "
            "allow_code=True; in Python, import the object and pass it"
        )
    if name not in permission.things:
        _check_fresh(name, permission.folder)
        permission.things[name] = _attribute(module_name, attribute)
    return permission.things[name]


# The source hash of each name when it was imported.
_IMPORTED: dict[str, str] = {}


def _check_fresh(name: str, folder: Path) -> None:
    """Refuse a module that does not exist, or whose source has changed since this process imported it."""
    module = name.partition(":")[0]
    if _spec(module, folder) is None:
        raise _missing(module, folder)
    source = _hash(name, _sources(module, folder))
    if module in sys.modules and _IMPORTED.get(name, source) != source:
        raise SettingError(f"the source of {name} has changed since it was imported; restart Python")
    _IMPORTED[name] = source


def _attribute(module_name: str, attribute: str) -> Any:
    thing: Any = _module(module_name)
    for part in attribute.split("."):
        if not hasattr(thing, part):
            known = (
                [member for member in vars(thing) if not member.startswith("_")] if hasattr(thing, "__dict__") else []
            )
            owner = f"the module {module_name!r}" if isinstance(thing, ModuleType) else repr(thing)
            raise SettingError(f"{owner} has no {part!r}{nearest(part, known)}")
        thing = getattr(thing, part)
    return thing


def _module(name: str) -> ModuleType:
    """Import a module without keeping its bytecode.

    Python matches bytecode to its source by modification time (in seconds) and length, so stale bytecode could be used
    for a source that has just changed.
    """
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        return importlib.import_module(name)
    finally:
        sys.dont_write_bytecode = before


def _missing(module: str, folder: Path) -> SettingError:
    return SettingError(
        f"there is no module {module!r} on Python's path or in {folder}; fix its name, or install its package"
    )


# From here on, nothing is imported.


def source_hash(spelling: str, folder: Path) -> str:
    """Return a hash of the source that defines a name of code, and of the modules it imports from the same origin.

    These are modules next to the experiment file, or in the same package. Comments and line breaks do not count.
    """
    name = parse(spelling).name
    check_form(name)
    module = name.partition(":")[0]
    files = _sources(module, folder.absolute())
    if module not in files:
        raise _missing(module, folder)
    return _hash(name, files)


def _hash(name: str, files: Mapping[str, Path]) -> str:
    digest = hashlib.sha256(name.encode())
    for module, file in sorted(files.items()):
        digest.update(f"{module} {_source(file).digest} ".encode())
    return digest.hexdigest()[:16]


def takes_parameter(spelling: str, parameter: str, folder: Path) -> bool:
    """Whether the class that a name of code refers to has a parameter, as far as its own source shows."""
    module, _, attribute = parse(spelling).name.partition(":")
    file = _sources(module, folder.absolute()).get(module)
    tree = None if file is None else _tree(file)
    if tree is None:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name == attribute.rpartition(".")[2]:
            fields = [
                line.target.id
                for line in node.body
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
            ]
            makers = [line for line in node.body if isinstance(line, ast.FunctionDef) and line.name == "__init__"]
            arguments = [argument.arg for maker in makers for argument in (*maker.args.args, *maker.args.kwonlyargs)]
            return parameter in (*fields, *arguments)
    return False


def _sources(module: str, folder: Path) -> dict[str, Path]:
    """Return the files of a module and of all modules of the same origin that it imports, by module name."""
    top = _spec(module.partition(".")[0], folder)
    beside = top is not None and _home(top) == folder
    files: dict[str, Path] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        parents = [name[: place.start()] for place in re.finditer(r"\.", name)]
        for imported_name in (*parents, name):
            spec = None if imported_name in files else _spec(imported_name, folder)
            if spec is None or spec.origin is None or not Path(spec.origin).is_file():
                continue
            files[imported_name] = Path(spec.origin)
            waiting += [
                dependency
                for dependency in _imports(imported_name, files[imported_name])
                if _same_origin(dependency, module, folder, beside)
            ]
    return files


def _same_origin(name: str, module: str, folder: Path, beside: bool) -> bool:
    top = name.partition(".")[0]
    if top == module.partition(".")[0]:
        return True
    spec = _spec(top, folder) if beside else None
    return spec is not None and _home(spec) == folder


def _home(spec: ModuleSpec) -> Path | None:
    """Return the folder that contains a module or package."""
    if spec.origin is None or not Path(spec.origin).is_file():
        places = list(spec.submodule_search_locations or ())
        return Path(places[0]).absolute().parent if places else None
    file = Path(spec.origin).absolute()
    return file.parent.parent if spec.submodule_search_locations else file.parent


def _spec(module: str, folder: Path) -> ModuleSpec | None:
    """Return the spec of a module without importing it or its package."""
    top, *parts = module.split(".")
    try:
        spec = PathFinder.find_spec(top, [*sys.path, str(folder)]) or importlib.util.find_spec(top)
        name = top
        for part in parts:
            if spec is None or spec.submodule_search_locations is None:
                return None
            name = f"{name}.{part}"
            spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    except (ValueError, ImportError):  # modules without a spec, such as __main__
        return None
    return spec


def _imports(name: str, file: Path) -> Iterator[str]:
    """Yield the names of modules that a file imports, as far as its source shows."""
    package = name if file.name == "__init__.py" else name.rpartition(".")[0]
    for level, module, names in _source(file).imports:
        above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
        base = ".".join((*above, *([module] if module else ())))
        if base:
            yield base
            yield from (f"{base}.{member}" for member in names)


class _Source(NamedTuple):
    """The facts about a file: a hash of its code, and its imports (level, module, names)."""

    digest: str
    imports: tuple[tuple[int, str, tuple[str, ...]], ...]


def _source(file: Path) -> _Source:
    about = file.stat()
    return _read_source(file, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=4096)
def _read_source(file: Path, *_: int) -> _Source:
    """Read a file, again only if it has changed."""
    tree = _tree(file)
    if tree is None:
        return _Source(hashlib.sha256(file.read_bytes()).hexdigest(), ())
    imports: list[tuple[int, str, tuple[str, ...]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports.append((node.level, node.module or "", tuple(alias.name for alias in node.names)))
    return _Source(hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(imports))


def _tree(file: Path) -> ast.Module | None:
    """Return the syntax tree of a file; None if it is not readable Python."""
    try:
        return ast.parse(file.read_bytes()) if file.suffix == ".py" else None
    except (SyntaxError, ValueError):
        return None


# Hashes of functions and tables: when the hash changes, cached results are computed again.


def code_hash(thing: Any) -> str:
    """Return a hash of a value, or of everything that the result of a function depends on, as far as its code shows.

    For a function that is its instructions with their names and constants, its defaults, the variables it closes over,
    and what its names refer to in its own module. For a class it is all its methods and values. A value that cannot be
    hashed gets a new hash every time, so it never counts as known.
    """
    digest = hashlib.sha256()
    for part in _parts(thing, set()):
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:16]


def is_ours(function: Any) -> bool:
    """Whether a function is part of cranfield, so that the version number identifies its code."""
    return (getattr(function, "__module__", None) or "").startswith("cranfield.")


def _parts(thing: Any, seen: set[int]) -> Iterator[bytes]:
    if isinstance(thing, FunctionType):
        # A function may call itself: stop the recursion.
        if id(thing) not in seen:
            seen.add(id(thing))
            yield from _parts(thing.__code__, seen)
            for value in _reached(thing):
                yield from _parts(value, seen)
    elif isinstance(thing, type):
        if id(thing) not in seen:
            seen.add(id(thing))
            for value in _members(thing):
                yield from _parts(value, seen)
    elif isinstance(thing, CodeType):
        yield from (thing.co_code, repr((thing.co_names, thing.co_freevars)).encode())
        for constant in thing.co_consts:
            yield from _parts(constant, seen)
    elif isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
        yield from (repr((thing.dtype.str, thing.shape)).encode(), np.ascontiguousarray(thing).tobytes())
    else:
        yield _pickled(thing)


def _reached(function: FunctionType) -> Iterator[Any]:
    """Yield the values a function uses besides its arguments; functions of other modules by name."""
    if is_ours(function):
        return  # the version number covers it
    closed = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    named = [function.__globals__[name] for name in function.__code__.co_names if name in function.__globals__]
    for value in (function.__defaults__, function.__kwdefaults__, *closed, *named):
        if isinstance(value, FunctionType | type) and value.__module__ != function.__module__:
            yield f"{value.__module__}.{value.__qualname__}"
        elif isinstance(value, ModuleType):
            yield value.__name__
        else:
            yield value


def _members(kind: type) -> Iterator[Any]:
    """Yield the methods and values of a class and its parents; parents from other modules by name."""
    for parent in kind.__mro__:
        yield f"{parent.__module__}.{parent.__qualname__}"
        if parent.__module__ != kind.__module__:
            continue
        for name, value in sorted(vars(parent).items()):
            held = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            # Other dunder names and the caches of abstract classes belong to Python.
            if isinstance(held, FunctionType) or not name.startswith(("__", "_abc_")):
                yield name
                yield held


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _pickled(thing: Any) -> bytes:
    try:
        return pickle.dumps(thing)
    except (pickle.PicklingError, TypeError, AttributeError):
        return secrets.token_bytes(16)
