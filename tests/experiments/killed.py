"""Run an experiment again and again in children that are killed, and say whether the files end up the same.

Run as a script, in a process of its own: a fork is safe only where no library has started its threads yet.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

DIFFER = ("log.jsonl", ".cranfield/lock", ".cranfield/process")


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file but those that tell of the processes."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(files.items()) if name not in DIFFER}


def start(
    experiment: Path, folder: Path, at: tuple[int | str, str] | None = None, jobs: int = 1, modules: Path | None = None
) -> int:
    """Run the experiment in a child; ``at`` kills it before or after the n-th file, or a stage's first record.

    The names of the modules that the child has imported in the end go to the file ``modules``.
    """
    child = os.fork()
    if child:
        return child
    try:
        from cranfield.experiments import run

        if at is not None:
            _deadly(*at)
        run(experiment, folder, jobs=jobs, report=_report)
        if modules is not None:
            modules.write_text("\n".join(sys.modules))
        os._exit(0)
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(1)


def _report(results: object, folder: Path) -> list[Path]:
    from cranfield._files import whole_file

    path = folder / "report.html"
    with whole_file(path) as temporary:
        temporary.write_text(str(results))
    return [path]


def _deadly(where: int | str, when: str) -> None:
    """Let the process die before or after it does something: the n-th renaming, or the first record of a stage."""
    from cranfield.experiments.store import Record

    owner, name = (Path, "replace") if isinstance(where, int) else (Record, "write")
    whole, seen = getattr(owner, name), [0]

    def deadly(*arguments: object) -> object:
        seen[0] += where == arguments[1].split("/")[0] if isinstance(where, str) else 1
        is_there = seen[0] == (1 if isinstance(where, str) else where)
        if is_there and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        done = whole(*arguments)
        if is_there and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, deadly)


def finish(experiment: Path, folder: Path, jobs: int = 1, modules: Path | None = None) -> None:
    _, status = os.waitpid(start(experiment, folder, jobs=jobs, modules=modules), 0)
    assert status == 0, f"the run after the kill ended with {status}"


def first(experiment: Path, folder: Path, jobs: int = 1) -> dict[str, bytes]:
    """Run the experiment, and import here what it imports, so that no child after it has to; return its files."""
    modules = folder.with_suffix(".modules")
    finish(experiment, folder, jobs, modules)
    for name in modules.read_text().split():
        with suppress(ImportError):
            importlib.import_module(name)
    return contents(folder)


def at_random_times(experiment: Path, home: Path, kills: int, seed: int, jobs: int) -> dict[str, object]:
    """Kill children that train so many systems at a time, at random times; finish each experiment, and compare."""
    draw, killed, number = random.Random(seed), 0, 0
    begun = time.monotonic()
    whole, reached = first(experiment, home / "whole", jobs), set()
    long = time.monotonic() - begun
    while killed < kills:
        number += 1
        folder = home / f"killed-{number}"
        begun, child = time.monotonic(), start(experiment, folder, jobs=jobs)
        time.sleep(draw.uniform(0, long))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if status != signal.SIGKILL:
            # It was done before: the next ones are given less time.
            long = 0.8 * min(long, time.monotonic() - begun)
            continue
        killed += 1
        reached.add(_last_stage(folder))
        finish(experiment, folder)
        assert contents(folder) == whole, f"killed-{number} differs: {_differences(contents(folder), whole)}"
    return {"killed": killed, "reached": sorted(reached), "files": len(whole)}


def at_files(experiment: Path, home: Path, moments: list[tuple[int, str]]) -> dict[str, object]:
    """Kill a child before or after the n-th file gets its name, for each of these moments; finish and compare."""
    whole, reached = first(experiment, home / "whole"), set()
    for count, when in moments:
        folder = home / f"file-{count}-{when}"
        _, status = os.waitpid(start(experiment, folder, (count, when)), 0)
        assert status in (signal.SIGKILL, 0), status
        reached.add(_last_stage(folder))
        finish(experiment, folder)
        assert contents(folder) == whole, f"{folder.name}: {_differences(contents(folder), whole)}"
    return {"reached": sorted(reached), "files": len(whole)}


def at_stages(experiment: Path, home: Path, stages: list[str], seed: int) -> dict[str, object]:
    """Kill one run at every stage, before or after the first record there; the next child goes on where it stopped.

    Before that, a child in a folder of its own is killed at a random time.
    """
    outcome = at_random_times(experiment, home, 1, seed, 1)
    whole, reached, folder = contents(home / "whole"), [], home / "killed"
    for number, stage in enumerate(stages):
        moment = (stage, ("before", "after")[number % 2])
        _, status = os.waitpid(start(experiment, folder, moment), 0)
        assert status == signal.SIGKILL, (stage, status)
        reached.append(_last_stage(folder))
    finish(experiment, folder)
    assert contents(folder) == whole, _differences(contents(folder), whole)
    return {**outcome, "reached": reached}


def _last_stage(folder: Path) -> str:
    try:
        told = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    except (OSError, ValueError):
        return "nothing"
    return str(next((one["artifact"].split("/")[0] for one in reversed(told) if "artifact" in one), "nothing"))


def _differences(found: dict[str, bytes], wanted: dict[str, bytes]) -> list[str]:
    return [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]


if __name__ == "__main__":
    # What a process has written outlives its kill: only a power cut would ask for more.
    os.fsync = lambda _: None  # type: ignore[assignment]
    # Before the children, so that none has to look for the versions of libraries.
    from cranfield.experiments.versions import versions

    versions()
    kind, experiment, home, argument, seed, jobs = sys.argv[1:]
    if kind == "times":
        print(json.dumps(at_random_times(Path(experiment), Path(home), int(argument), int(seed), int(jobs))))
    elif kind == "stages":
        print(json.dumps(at_stages(Path(experiment), Path(home), json.loads(argument), int(seed))))
    else:
        print(json.dumps(at_files(Path(experiment), Path(home), json.loads(argument))))
