"""Ratings written to a file, with a record of how they were made next to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cranfield._errors import SettingError
from cranfield._record import record as record_checksum
from cranfield._version import __version__
from cranfield.cli._output import put
from cranfield.data import Ratings, write
from cranfield.tables import check_format


def check_outputs(out: str, *others: str) -> None:
    """Refuse files that cannot be written or that are not ours to replace, before any work is lost."""
    for path in (out, *others):
        check_format(path)
    if len({Path(path) for path in (out, *others)}) <= len(others):
        raise SettingError(f"{out} is given twice as an output file; choose another for one of them")
    beside = _beside(out)
    if beside.exists() and not _is_record(beside, out):
        raise SettingError(
            f"the record of {out} would replace {beside}, which is another file; choose another name with --out, or "
            "move that file"
        )


def write_with_record(ratings: Ratings, out: str, **more: Any) -> Path:
    """Write ratings, and the record with all their steps; return the record."""
    record_checksum(write(ratings, out))
    record = {
        "cranfield": __version__,
        "ratings": Path(out).name,
        **more,
        "fingerprint": ratings.fingerprint,
        "steps": [step.as_dict() for step in ratings.history],
    }
    put(json.dumps(record, indent=2, ensure_ascii=False), str(_beside(out)))
    return _beside(out)


def _beside(out: str) -> Path:
    return Path(out).with_suffix(".json")


def _is_record(path: Path, out: str) -> bool:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return "cranfield" in record and bool(record["ratings"] == Path(out).name)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return False
