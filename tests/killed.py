"""Give a command again and again in children that are killed, finish each, and say whether the files end up the same.

    python killed.py HOME KIND ARGUMENT SEED COMMAND...

In COMMAND, OUT stands for the folder that is written. KIND and ARGUMENT say when a child is killed: ``times`` and how
often at random times, ``stages`` and a list of stages of an experiment, or ``files`` and a list of numbers of files,
each with "before" or "after". Run as a script, in a process of its own: a fork is safe only where no library has
started its threads yet.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

Moment = tuple[int | str, str]

# Files about processes and times, not about results.
DIFFER = ("log.jsonl", ".cranfield/lock", ".cranfield/process")


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder but those that tell of the processes."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(files.items()) if not name.endswith(DIFFER)}


def start(command: list[str], out: Path, at: Moment | None = None, modules: Path | None = None) -> int:
    """Give the command in a child; ``at`` kills it before or after the n-th file, or a stage's first record.

    The names of the modules that the child has imported in the end go to the file ``modules``.
    """
    child = os.fork()
    if child:
        return child
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    code = 1
    try:
        from cranfield.cli import main

        if at is not None:
            _deadly(*at)
        code = main([str(out) if word == "OUT" else word for word in command]) or 0
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 0 if stopped.code is None else 1
    finally:
        if modules is not None:
            modules.write_text("\n".join(sys.modules))
        os._exit(code)


def _deadly(where: int | str, when: str) -> None:
    """Let the process die before or after it does something: the n-th renaming, or the first record of a stage."""
    from cranfield.store.records import Record

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


def finish(command: list[str], out: Path, modules: Path | None = None) -> None:
    """Give the command until it is done; what was begun with several jobs is finished with one."""
    _, status = os.waitpid(start([word for word in command if word != "--jobs=2"], out, modules=modules), 0)
    assert status == 0, f"the command after the kill ended with {status}"


def first(command: list[str], out: Path) -> dict[str, bytes]:
    """Give the command, and import here what it imports, so that no child after it has to; return its files."""
    modules = out.with_suffix(".modules")
    out.parent.mkdir(parents=True, exist_ok=True)
    finish(command, out, modules)
    for name in modules.read_text().split():
        with suppress(ImportError):
            importlib.import_module(name)
    return contents(out)


def compare(out: Path, whole: dict[str, bytes]) -> None:
    files = contents(out)
    different = [name for name in {**files, **whole} if files.get(name) != whole.get(name)]
    assert not different, f"{out.name} differs: {different}"


def at_random_times(command: list[str], home: Path, kills: int, seed: int) -> dict[str, object]:
    """Kill children at random times; finish what each has begun, and compare with what was never killed."""
    draw, whole = random.Random(seed), first(command, home / "first")
    begun = time.monotonic()
    os.waitpid(start(command, home / "again"), 0)
    long = time.monotonic() - begun
    compare(home / "again", whole)
    killed = begun_before = 0
    while killed < kills:
        out = home / f"killed-{killed}"
        begun, child = time.monotonic(), start(command, out)
        time.sleep(draw.uniform(0, long))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if status != signal.SIGKILL:
            # It had finished before the kill: give the next ones less time.
            long = 0.8 * min(long, time.monotonic() - begun)
            shutil.rmtree(out)
            continue
        killed += 1
        begun_before += out.exists() and bool(contents(out))
        finish(command, out)
        compare(out, whole)
        shutil.rmtree(out)
    return {"killed": killed, "begun": begun_before, "files": len(whole)}


def at_files(command: list[str], home: Path, moments: list[Moment]) -> dict[str, object]:
    """Kill a child before or after the n-th file gets its name, for each of these moments; finish and compare."""
    whole, reached = first(command, home / "first"), set()
    for count, when in moments:
        out = home / f"file-{count}-{when}"
        _, status = os.waitpid(start(command, out, (count, when)), 0)
        assert status in (signal.SIGKILL, 0), status
        reached.add(_last_stage(out))
        finish(command, out)
        compare(out, whole)
    return {"reached": sorted(reached), "files": len(whole)}


def at_stages(command: list[str], home: Path, stages: list[str]) -> dict[str, object]:
    """Kill one run at every stage, before or after the first record there; the next child goes on where it stopped."""
    whole, reached, out = first(command, home / "first"), [], home / "killed"
    for number, stage in enumerate(stages):
        moment = (stage, ("before", "after")[number % 2])
        _, status = os.waitpid(start(command, out, moment), 0)
        assert status == signal.SIGKILL, (stage, status)
        reached.append(_last_stage(out))
    finish(command, out)
    compare(out, whole)
    return {"reached": reached, "files": len(whole)}


def _last_stage(folder: Path) -> str:
    try:
        steps = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    except (OSError, ValueError):
        return "nothing"
    return str(next((step["artifact"].split("/")[0] for step in reversed(steps) if "artifact" in step), "nothing"))


if __name__ == "__main__":
    # What a process has written survives its kill; fsync only matters for a power cut.
    os.fsync = lambda _: None  # type: ignore[assignment]
    # Import before forking, so that no child has to import most of the package or look up library versions.
    from cranfield.store.records import versions

    importlib.import_module("cranfield.experiments.stages")
    versions()
    home, kind, argument, seed, *command = sys.argv[1:]
    if kind == "times":
        print(json.dumps(at_random_times(command, Path(home), int(argument), int(seed))))
    else:
        moments = json.loads(argument)
        print(json.dumps((at_stages if kind == "stages" else at_files)(command, Path(home), moments)))
