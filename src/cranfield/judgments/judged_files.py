"""Files of judged lists; the run is only read if a metric needs it."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cranfield._errors import InputError, SettingError
from cranfield._files import whole_file
from cranfield.data import AUTO, Ratings
from cranfield.judgments.context import Context
from cranfield.judgments.draws import Draw
from cranfield.judgments.joining import one_relevant
from cranfield.judgments.judged import Judged
from cranfield.judgments.judging import judgments_under
from cranfield.judgments.judgments import Judgments, NegativeGrades
from cranfield.judgments.ranked import Ranked
from cranfield.rankings import Run

FORMAT = 1
"""Version of the layout of the file; files of any other version are refused."""

_NEEDED = ("lists", "ranks", "pointers", "lengths")
_OPTIONAL = ("tied_from", "tied_to", "places", "offsets", "pooled_above", "groups")


def save_judged(judged: Judged, path: str | Path) -> Path:
    """Write judged lists to a file (``.npz``): the positions of the judged items, and the facts about the run.

    The file contains neither the run nor the test set; pass both to `read_judged`.

    Examples
    --------
    >>> import tempfile
    >>> import cranfield as cf
    >>> test = cf.Ratings.of(["ann", "bob"], ["x", "y"])
    >>> judged = cf.judge({"mine": {"ann": ["z", "x"], "bob": ["y"]}}, test)
    >>> path = save_judged(judged, Path(tempfile.mkdtemp()) / "mine.npz")
    >>> cf.measure(read_judged(path, test), metrics="RR").average().tolist()
    [[0.75]]
    """
    path = Path(path)
    if path.suffix != ".npz":
        raise SettingError(f"{path} does not end in .npz; name the file {path.name}.npz")
    if judged.ranked is None:
        raise SettingError("these judged lists do not say which run they belong to; make them with judge")
    about = {
        "format": FORMAT,
        "ranked": asdict(judged.ranked),
        "counts": dict(judged.counts),
        "group_names": list(judged.group_names),
        "is_condensed": judged.is_condensed,
        "judgments": _digest(judged.judgments),
    }
    if judged.draw is not None:
        about["draw"] = {name: getattr(judged.draw, name) for name in ("number", "unrated", "longest")}
    arrays = {name: getattr(judged, name) for name in _NEEDED}
    arrays |= {name: getattr(judged, name) for name in _OPTIONAL if getattr(judged, name) is not None}
    if judged.ranked.one_relevant:
        arrays["keys"] = judged.judgments.keys
    if judged.draw is not None:
        arrays["sizes"] = judged.draw.sizes
    with whole_file(path) as temporary:
        np.savez(temporary, about=np.array(json.dumps(about)), **arrays)
    return path


def read_judged(
    path: str | Path,
    test: Any,
    run: Run | Callable[[], Run] | None = None,
    *,
    threshold: float | str | None = AUTO,
    train: Ratings | None = None,
    similarity: Any = None,
    negative_grades: NegativeGrades = "judged",
) -> Judged:
    """Read judged lists that `save_judged` wrote.

    Parameters
    ----------
    path
        The file.
    test
        The test set that the lists were judged by (`Ratings`, or `Judgments` of it); another one is refused.
    run
        The run that was judged, or a function that reads it, which is called only if a metric needs whole lists, scores
        or predictions. Without it such metrics are refused.
    threshold, train, similarity, negative_grades
        As for `judge`; the file does not contain a threshold.
    """
    path = Path(path)
    about, arrays = _opened(path)
    facts: dict[str, Any] = {
        name: tuple(fact) if isinstance(fact, list) else fact for name, fact in about["ranked"].items()
    }
    ranked = Ranked(**facts)
    sizes = arrays.pop("sizes", None)
    judgments = judgments_under(test, threshold, negative_grades, train)
    lists_judgments = _of_keys(judgments.base, arrays.pop("keys")) if ranked.one_relevant else judgments
    if lists_judgments is None or _digest(lists_judgments) != about["judgments"]:
        raise InputError("these lists were judged by another test set", source=path, remedy="judge the run again")
    return Judged(
        judgments=lists_judgments.at(judgments.threshold),
        **arrays,
        source=_checked(run, ranked, path),
        is_condensed=about["is_condensed"],
        context=Context(train, similarity),
        group_names=tuple(about["group_names"]),
        counts=about["counts"],
        ranked=ranked,
        draw=None if sizes is None else Draw(sizes=sizes, **about["draw"]),
    )


def _opened(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata of a file, and its arrays."""
    try:
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            arrays = {name: file[name] for name in file.files if name != "about"}
    except FileNotFoundError:
        raise InputError("there is no such file", source=path, remedy="name a file that save_judged wrote") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            "it is not a file of judged lists, or it is damaged", source=path, remedy="write it again"
        ) from error
    if about.get("format") != FORMAT or not set(_NEEDED) <= set(arrays):
        raise InputError("it was written by another version of cranfield", source=path, remedy="judge the run again")
    return about, arrays


def _of_keys(judgments: Judgments, keys: Any) -> Judgments | None:
    """Return the judgments of one-relevant lists, or None if the test set does not have them all."""
    chosen = np.searchsorted(judgments.keys, keys)
    known = np.append(judgments.keys, -1)[chosen] == keys
    return one_relevant(judgments, chosen) if known.all() else None


def _checked(run: Run | Callable[[], Run] | None, ranked: Ranked, path: Path) -> Run | Callable[[], Run] | None:
    """Check that a run is the one that was judged; a function is called once, and its run is checked then."""

    def same(candidate: Run) -> Run:
        if (candidate.name, len(candidate), len(candidate.items)) != (ranked.name, ranked.n_lists, ranked.n_entries):
            raise InputError(
                f"the run {candidate.name} is not the one that was judged ({ranked.name}, {ranked.n_lists:,} lists)",
                source=path,
                remedy="judge the run again",
            )
        return candidate

    if run is None or isinstance(run, Run):
        return None if run is None else same(run)
    return cache(lambda: same(run()))


def _digest(judgments: Judgments) -> str:
    """Return a hash of the judgments, which does not depend on the threshold."""
    digest = hashlib.sha256(f"{len(judgments.user_ids)} {len(judgments.item_ids)}".encode())
    for array, kind in ((judgments.users, "<i4"), (judgments.indptr, "<i8"), (judgments.items, "<i4")):
        digest.update(array.astype(kind).tobytes())
    digest.update(judgments.grades.astype("<f8").tobytes())
    digest.update(b"" if judgments.pool is None else judgments.pool.astype("<i8").tobytes())
    return digest.hexdigest()[:16]
