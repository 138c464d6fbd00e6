"""Files of the ranked lists of several systems: made, recorded, and kept if they were made from the same inputs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from cranfield._own_code import names_code, source_hash
from cranfield._record import is_as_written, made_of, record
from cranfield._registry import parse
from cranfield._version import __version__
from cranfield.data import Ratings
from cranfield.rankings.recommending import decided, timed_each
from cranfield.rankings.run import Run, write_run
from cranfield.rankings.top import fill_system
from cranfield.recommenders import recommender
from cranfield.splits import Split

_CHECKPOINTS = ".cranfield-checkpoints"


def recommend_to_files(
    split: Split | Ratings, files: Mapping[str, Path], *, resume: bool = False, **decisions: Any
) -> Iterator[tuple[Path, Run, str]]:
    """Do what `timed_each` does, and write each run to the file of its system, with a record of what made it.

    Yields each file with its run and a remark in brackets on the file that it replaces. With ``resume``, a file that
    was made from the same inputs is kept and not yielded, and training continues at a checkpoint.
    """
    made_from = {system: _inputs(split, system, decisions) for system in files}
    remarks = {system: _remark(path, made_from[system], resume) for system, path in files.items()}
    wanted = [system for system, remark in remarks.items() if remark is not None]
    # Files are named after the spelling of a system, whatever name is displayed.
    checkpoints = {system: files[system].parent / _CHECKPOINTS / f"{files[system].stem}.npz" for system in wanted}
    if not resume:
        _remove(checkpoints.values())
    how: dict[str, Any] = {name: decisions.pop(name) for name in ("seed", "jobs") if name in decisions}
    how["serving"], how["ranking"] = decided(decisions)
    named = {system: system for system in wanted}
    results = timed_each(split, named, checkpoints=checkpoints, **how) if wanted else ()

    def written(run: Run) -> tuple[Path, Run, str]:
        path = write_run(run, files[run.name])
        calibrated = {} if run.calibration is None else {"calibrated": run.calibration.as_dict()}
        record(path, made_from[run.name] | calibrated)
        _remove([checkpoints[run.name]])
        return path, run, remarks[run.name] or ""

    return (written(done.result) for done in results)


def _inputs(split: Split | Ratings, system: str, decisions: Mapping[str, Any]) -> dict[str, Any]:
    """Return everything that the lists of a system depend on, ready for JSON."""
    train, test = (split.train, split.test) if isinstance(split, Split) else (split, None)
    seed, fill = decisions["seed"], fill_system(decisions["fill"], decisions["seed"])
    inputs = {
        "version": __version__,
        "training ratings": _identity(train),
        "test ratings": None if test is None else _identity(test),
        **({"profiles": _identity(split.profiles)} if isinstance(split, Split) and split.profiles is not None else {}),
        "system": system,
        "parameters": _parameters(system, seed),
        **{name: value for name, value in decisions.items() if name != "jobs"},
        "fill": None if fill is None else [decisions["fill"], dict(vars(fill))],
    }
    if described := [side.fingerprint for side in (train.user_features, train.item_features) if side is not None]:
        inputs["features"] = described
    if isinstance(split, Split) and split.item_groups is not None:
        inputs["item groups"] = split.item_groups.tolist()
    kept: dict[str, Any] = json.loads(json.dumps(inputs))
    return kept


def _parameters(system: str, seed: int) -> dict[str, Any]:
    """Return the parameters of a system; for the user's own code the spelled ones, with a hash of its source."""
    if names_code(system):
        return {**dict(parse(system).parameters), "source": source_hash(system, Path.cwd())}
    return dict(vars(recommender(system, seed)))


def _identity(ratings: Ratings) -> list[str]:
    # Ids that read the same as numbers and as text are written differently.
    return [ratings.fingerprint, str(ratings.user_ids.dtype), str(ratings.item_ids.dtype)]


def _remark(path: Path, inputs: Mapping[str, Any], resume: bool) -> str | None:
    """Return the remark on a run that has to be made, or None if it exists and was made from the same inputs."""
    if not path.exists():
        return ""
    if not resume:
        return " (replaced)"
    there = made_of(path)
    if there is None:
        return " (made again: no record says how the existing file was made)"
    there = {name: value for name, value in there.items() if name != "calibrated"}  # implied by the others
    other = [name.replace("_", " ") for name in {**there, **inputs} if there.get(name) != inputs.get(name)]
    if other:
        return f" (made again: the existing file differs in {', '.join(other)})"
    return None if is_as_written(path) else " (made again: the existing file has changed since it was written)"


def _remove(checkpoints: Iterable[Path]) -> None:
    """Remove checkpoints, and their folder if it is then empty."""
    for path in checkpoints:
        path.unlink(missing_ok=True)
        with suppress(OSError):
            path.parent.rmdir()
