"""Fitted models as npz files, never as pickles, since unpickling can run any code."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cranfield._errors import InputError, SettingError
from cranfield._files import whole_file
from cranfield._version import __version__
from cranfield.data import Ratings
from cranfield.recommenders.model import Model
from cranfield.recommenders.protocol import Recommender, as_recommender

_ABOUT = "about"
_AGAIN = "train the system again"
# The errors of NumPy and zipfile for a file that is damaged or of another format.
_DAMAGED = (OSError, EOFError, ValueError, KeyError, NotImplementedError, MemoryError, zipfile.BadZipFile, zlib.error)


def can_be_kept(system: Any) -> bool:
    """Whether `save_model` can save a system: a `Model`, or a system with ``save`` and ``load``.

    Your own `Model` needs ``save`` and ``load`` too if it learns anything other than arrays and plain values.
    """
    return isinstance(system, Model) or _keeps_itself(system)


def _keeps_itself(system: Any) -> bool:
    return all(callable(getattr(system, name, None)) for name in ("save", "load"))


def save_model(model: Recommender, path: str | Path) -> Path:
    """Write a fitted system to a file, whole or not at all.

    Parameters
    ----------
    model
        A system of this package, whose arrays go to an npz file with its name, its settings, the version of cranfield
        and the hash of the training ratings; or your own system with ``save(path)`` and ``load(path)``, which writes
        one file in any format.
    path
        The file to write, usually ending in ``.npz``.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.recommenders import recommender
    >>> train = Ratings.of(["ann", "bob", "bob"], ["x", "x", "y"])
    >>> path = save_model(recommender("popularity").fit(train), Path(tempfile.mkdtemp()) / "popularity.npz")
    >>> read_model(path, "popularity", train).score([0]).tolist()
    [[2.0, 1.0]]
    """
    if not can_be_kept(model):
        raise SettingError(
            f"{type(model).__name__} cannot be saved; give it save(path) and load(path), or keep its lists"
        )
    if isinstance(model, Model) and not _keeps_itself(model):
        return write_arrays(path, {_ABOUT: np.array(json.dumps(about_model(model, model.train))), **model.state()})
    with whole_file(path) as temporary:
        model.save(temporary)  # type: ignore[attr-defined]
    return Path(path)


def write_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> Path:
    """Write arrays into one file, whole or not at all, in a fixed order, so that equal arrays give equal bytes."""
    ordered: dict[str, Any] = {name: np.asarray(values, order="C") for name, values in sorted(arrays.items())}
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **ordered)
    return Path(path)


def read_model(path: str | Path, spelling: Any, train: Ratings, *, seed: int | None = None) -> Recommender:
    """Read a fitted system that `save_model` wrote.

    Parameters
    ----------
    path
        The file.
    spelling
        The spelling of the system, or your own unfitted system, which loads itself.
    train
        The ratings that it was fitted on. Other ratings, other settings or another version of cranfield raise an
        `InputError`.
    seed
        The seed of a system that uses random numbers, unless the spelling gives one.
    """
    system, path = as_recommender(spelling, seed), Path(path)
    if not can_be_kept(system):
        raise SettingError(f"{type(system).__name__} has no load(path) to read {path} with; train it again")
    if _keeps_itself(system):
        if not path.is_file():
            raise InputError("there is no such file", source=path, remedy=_AGAIN)
        system.load(path)  # type: ignore[attr-defined]
        if isinstance(system, Model):
            system.fitted_on(train)
        return system
    assert isinstance(system, Model)
    arrays = read_arrays(path, "this is not a saved model, or it is damaged", _AGAIN)
    _check_same(path, arrays.pop(_ABOUT, None), about_model(system, train))
    try:
        return system.restore(arrays, train)
    except InputError as error:
        raise InputError(error.problem, source=path, remedy=_AGAIN) from error


def about_model(model: Model, train: Ratings) -> dict[str, Any]:
    """Return the description of a model: version, system, settings and training data."""
    settings = {field.name: getattr(model, field.name) for field in fields(model)}
    return {"cranfield": __version__, "system": model.name, "settings": settings, "train": model.source(train)}


def read_arrays(path: Path, problem: str, remedy: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a file that `write_arrays` wrote, or raise an error that states the ``problem``."""
    try:
        with path.open("rb") as file, np.lib.npyio.NpzFile(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except FileNotFoundError:
        raise InputError("there is no such file", source=path, remedy=remedy) from None
    except _DAMAGED as error:
        raise InputError(problem, source=path, remedy=remedy) from error


def _check_same(path: Path, stored: NDArray[Any] | None, wanted: dict[str, Any]) -> None:
    """Refuse a model of another system, version or training set."""
    try:
        about = json.loads(str(stored))
        kept = {name: about[name] for name in wanted}
        kept["settings"] = dict(kept["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError("this is not a saved model", source=path, remedy=_AGAIN) from error
    differs = next((name for name in wanted if kept[name] != wanted[name]), None)
    if differs == "train":
        raise InputError("this model was trained on other ratings", source=path, remedy=_AGAIN)
    if differs == "settings":
        pairs = {name: (kept[differs].get(name), value) for name, value in wanted[differs].items()}
        differences = ", ".join(f"{name}={was}, not {now}" for name, (was, now) in pairs.items() if was != now)
        raise InputError(f"this model was trained with {differences}", source=path, remedy=_AGAIN)
    if differs is not None:
        word = "version" if differs == "cranfield" else differs
        raise InputError(f"this model is for {word} {kept[differs]}, not {wanted[differs]}", source=path, remedy=_AGAIN)
