"""Give a command again and again in children that are killed, finish each, and say whether the files end up the same.

    python killed.py HOME KILLS SEED COMMAND...

In COMMAND, OUT stands for the folder that is written. Run as a script, in a process of its own: a fork is safe only
where no library has started its threads yet.
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

# What tells of processes and times, not of results.
DIFFER = ("log.jsonl", ".cranfield/lock", ".cranfield/process")


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder but those that tell of the processes."""
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(files.items()) if not name.endswith(DIFFER)}


def start(command: list[str], out: Path, modules: Path | None = None) -> int:
    """Give the command in a child; the names of the modules that it imported go to a file."""
    child = os.fork()
    if child:
        return child
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    code = 1
    try:
        from cranfield.cli import main

        code = main([str(out) if word == "OUT" else word for word in command]) or 0
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else 0 if stopped.code is None else 1
    finally:
        if modules is not None:
            modules.write_text("\n".join(sys.modules))
        os._exit(code)


def finish(command: list[str], out: Path, modules: Path | None = None) -> None:
    _, status = os.waitpid(start(command, out, modules), 0)
    assert status == 0, f"the command after the kill ended with {status}"


def killed_at_random(command: list[str], home: Path, kills: int, seed: int) -> dict[str, int]:
    """Kill children at random times; finish what each has begun, and compare with what was never killed."""
    modules, draw = home / "modules", random.Random(seed)
    finish(command, home / "first", modules)
    for name in modules.read_text().split():
        with suppress(ImportError):
            importlib.import_module(name)
    begun = time.monotonic()
    finish(command, home / "whole")
    long, whole = time.monotonic() - begun, contents(home / "whole")
    killed = begun_before = 0
    while killed < kills:
        out = home / f"killed-{killed}"
        begun, child = time.monotonic(), start(command, out)
        time.sleep(draw.uniform(0, long))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if status != signal.SIGKILL:
            # It was done before: the next ones are given less time.
            long = 0.8 * min(long, time.monotonic() - begun)
            shutil.rmtree(out)
            continue
        killed += 1
        begun_before += out.exists() and bool(contents(out))
        finish(command, out)
        different = [name for name in {**contents(out), **whole} if contents(out).get(name) != whole.get(name)]
        assert not different, f"{out.name} differs: {different}"
        shutil.rmtree(out)
    return {"killed": killed, "begun": begun_before, "files": len(whole)}


if __name__ == "__main__":
    # What a process has written outlives its kill: only a power cut would ask for more.
    os.fsync = lambda _: None  # type: ignore[assignment]
    home, kills, seed, *command = sys.argv[1:]
    print(json.dumps(killed_at_random(command, Path(home), int(kills), int(seed))))
