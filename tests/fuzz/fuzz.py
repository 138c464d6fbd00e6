"""Damage good files at random and read them: what comes back is data, or one line that says what is wrong.

Run as a script: ``python tests/fuzz/fuzz.py --seconds 600 --findings found``. The reading is done in children, with a
limit on its memory and a time after which a reading is killed, so that a finding may also be an abort or a hang. What
goes wrong is kept in the folder of findings, as the file that was read: it goes to ``tests/fuzz/cases`` with the fix.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

LONGEST, MOST_MEMORY = 10, 1 << 30
ROUNDS_PER_CHILD = 300

Packing = Callable[[bytes], bytes]


class Seed(NamedTuple):
    """A good file: its name, what it holds, and how that is packed."""

    name: str
    content: bytes
    pack: Packing = bytes


def zipped(content: bytes) -> bytes:
    """Return a zip archive with one member."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ratings.csv", content)
    return buffer.getvalue()


def zstandard(content: bytes) -> bytes:
    """Return content compressed with Zstandard."""
    import zstandard

    return zstandard.compress(content)


def _lines(rows: Iterator[tuple[Any, ...]] | list[tuple[Any, ...]], separator: str, header: str = "") -> bytes:
    return "".join([f"{header}\n" if header else "", *(separator.join(map(str, row)) + "\n" for row in rows)]).encode()


def _ratings() -> list[tuple[Any, ...]]:
    return [(u, 10 + i, 1 + (u * i) % 5, 978300000 + 1000 * u + i) for u in range(1, 9) for i in range(u % 3, 9, 2)]


def ratings() -> Iterator[Seed]:
    """Files of ratings."""
    rows = _ratings()
    named = _lines(rows, ",", "userId,movieId,rating,timestamp")
    dated = [(f"u{u}", f'"The {i}, a film"', r / 2, f"2001-02-{u:02}T10:00:{i:02}") for u, i, r, _ in rows]
    yield Seed("named.csv", named)
    yield Seed("quoted.csv", _lines(dated, ",", "user,item,rating,time"))
    yield Seed("bare.tsv", _lines(rows, "\t"))
    yield Seed("colons.dat", _lines(rows, "::"))
    yield Seed("pairs.txt", _lines([row[:2] for row in rows], " "))
    yield Seed("semicolons.csv", _lines([row[:3] for row in rows], ";", "user;item;rating"))
    yield Seed(
        "lines.jsonl", b"\n".join(json.dumps(dict(zip(["user", "item", "rating"], row))).encode() for row in rows)
    )
    yield Seed("named.csv.gz", named, gzip.compress)
    yield Seed("named.csv.bz2", named, bz2.compress)
    yield Seed("named.csv.xz", named, lzma.compress)
    yield Seed("named.csv.zst", named, zstandard)
    yield Seed("named.zip", named, zipped)
    yield from _tables("ratings", {"user": 0, "item": 1, "rating": 2, "time": 3}, rows)


def _tables(name: str, columns: dict[str, int], rows: list[tuple[Any, ...]]) -> Iterator[Seed]:
    import polars as pl

    frame = pl.DataFrame({column: [row[place] for row in rows] for column, place in columns.items()})
    for compression in ("uncompressed", "zstd"):
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression=compression)
        yield Seed(f"{name}-{compression}.parquet", buffer.getvalue())


def _ranked() -> list[tuple[Any, ...]]:
    return [(u, 10 + i, 6 - i, round(1 / (1 + i), 3)) for u in range(1, 9) for i in range(6)]


def runs() -> Iterator[Seed]:
    """Files of ranked lists as the tools write them."""
    import polars as pl

    rows = _ranked()
    lists = {u: {str(i): s for v, i, _, s in rows if v == u} for u in range(1, 9)}
    yield Seed("run.trec", _lines([(u, "Q0", i, r, s, "knn") for u, i, r, s in rows], " "))
    yield Seed("table.csv", _lines(rows, ",", "user,item,rank,score"))
    yield Seed("elliot.tsv", _lines([(u, i, s) for u, i, _, s in rows], "\t"))
    yield Seed(
        "recbole.csv", _lines([(u, i, s) for u, i, _, s in rows], ",", "user_id:token,item_id:token,score:float")
    )
    yield Seed("rectools.csv", _lines(rows, ",", "user_id,item_id,rank,score"))
    mahout = [(u, "[" + ",".join(f"{i}:{s}" for i, s in items.items()) + "]") for u, items in lists.items()]
    yield Seed("ranksys.txt", _lines(mahout, "\t"))
    yield Seed("relevant.csv", _lines([(u, i, 2, 6) for u, i, *_ in rows[::6]], ",", "user,item,rank,length"))
    yield Seed("systems.csv", _lines([("ab"[u % 2], u, i, s) for u, i, _, s in rows], ",", "system,user,item,score"))
    yield Seed("lists.json", json.dumps(lists).encode())
    yield Seed("pairs.json", json.dumps({u: list(items.items()) for u, items in lists.items()}).encode())
    yield Seed("plain.json", json.dumps({u: list(items) for u, items in lists.items()}).encode())
    yield Seed("run.trec.gz", _lines([(u, "Q0", i, r, s, "knn") for u, i, r, s in rows], "\t"), gzip.compress)
    yield from _tables("lenskit", {"user_id": 0, "item_id": 1, "rank": 2, "score": 3}, rows)
    nested = pl.DataFrame(
        {
            "user_id": list(lists),
            "item_id": [list(items) for items in lists.values()],
            "score": [list(items.values()) for items in lists.values()],
        }
    )
    for name, write in (("nested.parquet", nested.write_parquet), ("nested.arrow", nested.write_ipc)):
        buffer = io.BytesIO()
        write(buffer)
        yield Seed(name, buffer.getvalue())


def judgments() -> Iterator[Seed]:
    """Files of test sets."""
    rows = _ratings()
    yield Seed("qrels.txt", _lines([(u, 0, i, r) for u, i, r, _ in rows], " "))
    yield Seed("qrels.tsv", _lines([(u, "Q0", i, r) for u, i, r, _ in rows], "\t"))
    yield Seed("test.csv", _lines([row[:3] for row in rows], ",", "user,item,rating"))
    yield Seed("test.json", json.dumps({u: {str(i): r for v, i, r, _ in rows if v == u} for u in range(1, 9)}).encode())
    yield from _tables("ranx", {"q_id": 0, "doc_id": 1, "score": 2}, rows)


def splits() -> Iterator[Seed]:
    """The record of a split."""
    from cranfield import Ratings, splits
    from cranfield.splits.files import write

    with tempfile.TemporaryDirectory() as folder:
        record = write(splits.random(Ratings.of(*zip(*[row[:3] for row in _ratings()]))), folder, format="csv")
        yield Seed("split.json", record.read_bytes())


def experiments() -> Iterator[Seed]:
    """Experiment files."""
    from cranfield.experiments import Experiment
    from cranfield.experiments.file import toml_of

    yield Seed("default.toml", toml_of(Experiment()).encode())
    yield Seed(
        "searched.toml",
        b"""title = "Mine"
repetitions = 2
[decisions]
split = "per_user(train=0.8)"
threshold = 4
metrics = ["P@5", "nDCG(gain=exp)@10"]
filters = ["min_ratings(user=2)"]
[data.mine]
file = "ratings.csv"
separator = "::"
header = false
[data.divided]
train = "train.csv"
test = "test.csv"
[systems]
"MF" = "wrmf(factors=5, alpha=1)"
"mine" = { run = "mine.tsv" }
"tuned" = { system = "knn", search = { k = [50, 100] }, metric = "nDCG@10", trials = 2 }
[notes]
tuning = "by hand"
[assess]
""",
    )


SPELLINGS = """nDCG(gain=exp)@100
P@10
RBP(p=0.8)@10
weighted(by=relevant)
geometric(form=trec_eval)
trimmed(share=0.1)
random(train=0.8)
per_user(train=0.8, seed=1)
leave_out(test=1)
temporal(at=2001-01-01)
time_window(start=2001-01-01, end=2002-01-01)
min_ratings(user=5)
knn(k=100, similarity=cosine)
wrmf(factors=50, alpha=1, regularization=0.1, target=rating, binary=false)
world(users=10, items=10, ratings=50)"""


def spellings() -> Iterator[Seed]:
    """What is written for metrics, averages, splits, filters, systems and simulations."""
    for number, text in enumerate(SPELLINGS.splitlines()):
        yield Seed(f"spelling-{number}.txt", text.encode())


def read_ratings(path: Path, chance: random.Random) -> None:
    """Read ratings, with an option or none."""
    import cranfield

    options: list[dict[str, Any]] = [
        *({}, {}, {}, {"repeated": "last"}, {"repeated": "mean", "time": False}, {"rating": False}),
        *({"header": False, "repeated": "sum"}, {"header": True}, {"quote": None}, {"counts": "to_ratings"}),
        *({"encoding": "latin-1", "repeated": "first"}, {"separator": "::"}, {"user": 2, "item": 1}),
        {"encoding": "utf-16"},
    ]
    cranfield.describe(cranfield.read(path, **chance.choice(options)))


def read_run(path: Path, chance: random.Random) -> None:
    """Read one run or several from a file, or what is in it."""
    import cranfield
    from cranfield.rankings.layouts import LAYOUTS, TOOLS

    asked = chance.choice([None, None, None, *LAYOUTS, *TOOLS])
    ties = chance.choice(["trec_eval", "input", "average"])
    way = chance.randrange(3)
    if way == 0:
        cranfield.read_runs(path, format=asked, ties=ties)
    elif way == 1:
        with path.open("rb") as file:
            cranfield.read_run(file, format=asked)
    else:
        cranfield.read_run(path, format=asked, ties=ties)


def read_dictionary(path: Path, chance: random.Random) -> None:
    """Read the dictionary that a JSON file holds, if it still is one."""
    import cranfield

    try:
        lists = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return
    if isinstance(lists, dict):
        (cranfield.read_run if chance.random() < 0.5 else cranfield.read_test)(lists)


def read_judgments(path: Path, chance: random.Random) -> None:
    """Read a test set."""
    import cranfield

    cranfield.read_test(path, format=chance.choice([None, None, "ratings", "qrels"]))


def evaluate(path: Path, chance: random.Random) -> None:
    """Measure a good run against a test set, as the command line does."""
    import cranfield

    lists = {u: {i: s for v, i, _, s in _ranked() if v == u} for u in range(1, 9)}
    test = cranfield.read_test(path, repeated="last")
    run = cranfield.read_run(lists, name="good")
    str(cranfield.measure(run, test, metrics=["P@5", "nDCG@5", "AP", "RR"], threshold=3).table())


def write_over_split(path: Path, chance: random.Random) -> None:
    """Write a split where the record of another one is."""
    from cranfield import Ratings, splits
    from cranfield.splits.files import write

    folder = path.parent / "split"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(path, folder / "split.json")
    made = splits.random(Ratings.of(*zip(*[row[:3] for row in _ratings()])), seed=chance.randrange(2))
    write(made, folder, format="csv", force=chance.random() < 0.5)


def read_experiment(path: Path, chance: random.Random) -> None:
    """Read an experiment file."""
    from cranfield.experiments import read_experiment

    read_experiment(path)


def read_spelling(path: Path, chance: random.Random) -> None:
    """Take a text for the spelling of each thing that is spelled."""
    import cranfield
    from cranfield.data import filters
    from cranfield.experiments import Decisions
    from cranfield.experiments.experiment import System
    from cranfield.experiments.source import Source

    text = path.read_bytes().decode("utf-8", errors="replace")
    data = cranfield.Ratings.of(*zip(*[row[:3] for row in _ratings()]))
    makers: list[Callable[[], Any]] = [
        lambda: cranfield.Metric.of(text),
        lambda: Decisions(split=text),
        lambda: Decisions(average=text),
        lambda: Decisions(metrics=(text,)),
        lambda: Decisions(filters=(text,)),
        lambda: System(text, text),
        lambda: Source("mine", simulate=text),
        lambda: filters.apply(data, [text]),
    ]
    one_line_each(makers)


def one_line_each(makers: list[Callable[[], Any]]) -> None:
    """Call each; pass on what is not a mistake of the user in one line."""
    for maker in makers:
        problem = complaint(maker)
        if problem is not None:
            raise AssertionError(problem)


class Reader(NamedTuple):
    """What reads a kind of file, and good files of that kind."""

    seeds: Callable[[], Iterator[Seed]]
    read: Callable[[Path, random.Random], None]


READERS = {
    "ratings": Reader(ratings, read_ratings),
    "runs": Reader(runs, read_run),
    "dictionaries": Reader(lambda: (seed for seed in (*runs(), *judgments()) if ".json" in seed.name), read_dictionary),
    "judgments": Reader(judgments, read_judgments),
    "evaluation": Reader(judgments, evaluate),
    "splits": Reader(splits, write_over_split),
    "experiments": Reader(experiments, read_experiment),
    "spellings": Reader(spellings, read_spelling),
}


TOKENS = [
    *(
        b'"',
        b"'",
        b"\n",
        b"\r",
        b"\r\n",
        b"\t",
        b",",
        b";",
        b"|",
        b" ",
        b":",
        b"::",
        b"{",
        b"}",
        b"[",
        b"]",
        b"(",
        b")",
    ),
    *(b"", b"0", b"-1", b"1e309", b"-1e309", b"nan", b"NaN", b"inf", b"null", b"None", b"true", b"1.5", b"007", b"+5"),
    *(b"99999999999999", b"9223372036854775808", b"-9223372036854775809", b"18446744073709551616", b"9" * 5000),
    *(b"\x00", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\x1b[31m", b"\x9b", b"\xc2\x9b", b"\xe2\x80\xae", b"\xc2\xb2"),
    *("٣".encode(), "½".encode(), "é".encode(), "\U0001f600".encode(), b"\xed\xa0\x80", b"#", b"=", b"@", b"%", b"\\"),
    *(b"2001-02-30", b"0000-00-00", b"99999-01-01", b"user", b"item", b"rating", b"Q0", b"3.i", b"user::user"),
    *(b'{"a":' * 2000, b"[" * 2000, b"(" * 2000, b"x" * 70000, b'""', b'"""', b"\n\n\n", b",,,,"),
]


def damaged(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Return content with one to four damages."""
    for _ in range(chance.choice([1, 1, 2, 3, 4])):
        content = chance.choice(DAMAGES)(bytearray(content), others, chance)
    return bytes(content)


def _place(content: bytearray, chance: random.Random) -> int:
    return chance.randint(0, len(content))


def _flip(content: bytearray, _: list[bytes], chance: random.Random) -> bytes:
    for _n in range(chance.choice([1, 1, 4, 16])):
        if content:
            content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return content


def _insert(content: bytearray, _: list[bytes], chance: random.Random) -> bytes:
    place = _place(content, chance)
    return content[:place] + chance.choice(TOKENS) + content[place:]


def _replace_word(content: bytearray, _: list[bytes], chance: random.Random) -> bytes:
    words = list(re.finditer(rb"[^\s,;:|@=\[\]{}()\"]+", content))
    if not words:
        return content
    word = chance.choice(words)
    return content[: word.start()] + chance.choice(TOKENS) + content[word.end() :]


def _delete(content: bytearray, _: list[bytes], chance: random.Random) -> bytes:
    start = _place(content, chance)
    return content[:start] + content[start + chance.choice([1, 2, 10, 100]) :]


def _cut(content: bytearray, _: list[bytes], chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _repeat(content: bytearray, _: list[bytes], chance: random.Random) -> bytes:
    start = _place(content, chance)
    part = content[start : start + chance.choice([1, 5, 50])]
    return content[:start] + part * chance.choice([2, 10, 500]) + content[start:]


def _shuffle_lines(content: bytearray, _: list[bytes], chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    chance.shuffle(lines)
    return b"".join(lines)


def _exchange(content: bytearray, _: list[bytes], chance: random.Random) -> bytes:
    one, other = chance.sample([b",", b"\t", b" ", b"::", b";", b"\n", b"\r\n", b'"', b":", b"0", b"1"], 2)
    return content.replace(one, other)


def _splice(content: bytearray, others: list[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    return content[: _place(content, chance)] + other[chance.randint(0, len(other)) :]


def _only(_: bytearray, __: list[bytes], chance: random.Random) -> bytes:
    return b"".join(chance.choice(TOKENS) for _n in range(chance.randint(0, 12)))


DAMAGES = [_flip, _flip, _insert, _insert, _replace_word, _replace_word, _delete, _cut, _repeat, _shuffle_lines]
DAMAGES += [_exchange, _splice, _only]

# Control characters of terminals, and characters that change the writing direction.
_HARMFUL = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def complaint(read: Callable[[], Any]) -> str | None:
    """Say what is wrong with how a reading ended; data, or one line for the user, are right."""
    from cranfield import CranfieldError

    try:
        read()
    except CranfieldError as error:
        return f"not one plain line: {str(error)[:300]!r}" if _HARMFUL.search(str(error)) else None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        places = traceback.extract_tb(error.__traceback__)
        return f"{type(error).__name__}: {str(error)[:200]!r} at " + " < ".join(
            f"{Path(place.filename).name}:{place.lineno}" for place in places[-6:][::-1]
        )
    return None


class Work(NamedTuple):
    """A reader with its good files."""

    name: str
    reader: Reader
    seeds: list[Seed]

    def warm_up(self, home: Path) -> None:
        """Read the good files, so that whatever is made but once is made before memory is limited."""
        for seed in self.seeds:
            path = home / seed.name
            path.write_bytes(seed.pack(seed.content))
            for way in range(2):
                problem = complaint(partial(self.reader.read, path, random.Random(way)))
                if problem is not None:
                    raise SystemExit(f"a good file cannot be read: {seed.name}: {problem}")
            path.unlink()

    def damaged_file(self, chance: random.Random) -> tuple[str, bytes]:
        """Return the name and the content of a file that was damaged, or packed after it was."""
        others = [seed.content for seed in self.seeds]
        seed = chance.choice(self.seeds)
        if seed.pack is bytes or chance.random() < 0.5:
            return seed.name, seed.pack(damaged(seed.content, others, chance))
        return seed.name, damaged(seed.pack(seed.content), others, chance)


def _child(asked: argparse.Namespace) -> None:
    """Read damaged files, and print what went wrong; the file that is being read is in the work folder."""
    home = Path(asked.work)
    works = [Work(name, READERS[name], list(READERS[name].seeds())) for name in asked.reader]
    for work in works:
        work.warm_up(home)
    for number in range(asked.first, asked.first + asked.rounds):
        for work in works:
            chance = random.Random(f"{asked.seed} {work.name} {number}")
            name, content = work.damaged_file(chance)
            (home / name).write_bytes(content)
            told = {"round": number, "reader": work.name, "name": name}
            print(json.dumps(told), flush=True)
            with _limits():
                problem = complaint(partial(work.reader.read, home / name, chance))
            if problem is not None:
                print(json.dumps({**told, "problem": problem, "hex": content.hex()}), flush=True)
            (home / name).unlink()


@contextmanager
def _limits() -> Iterator[None]:
    """Give a reading so much time, and so much memory beyond what the process has by now."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY, resource.RLIM_INFINITY))
    signal.alarm(LONGEST)
    yield
    signal.alarm(0)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


Findings = dict[str, dict[str, Any]]


def _batch(readers: list[str], first: int, rounds: int, seed: int, findings: Findings) -> int:
    """Let a child read so many files for each reader; return how many it came to."""
    with tempfile.TemporaryDirectory() as work:
        command = ["--first", first, "--rounds", rounds, "--seed", seed, "--work", work]
        command += [part for reader in readers for part in ("--reader", reader)]
        environment = {**os.environ, "MALLOC_ARENA_MAX": "2", "POLARS_MAX_THREADS": "2"}
        done = subprocess.run([sys.executable, __file__, *map(str, command)], capture_output=True, env=environment)
        told = [json.loads(line) for line in done.stdout.splitlines()]
        for one in told:
            if "problem" in one:
                kind = re.sub(r"(?s)^(\w+): .* at ", r"\1 at ", one["problem"])
                findings.setdefault(f"{one['reader']}: {kind}", one)
        if done.returncode == 0:
            return rounds
        if not told or done.returncode > 0:
            raise RuntimeError(done.stderr.decode(errors="replace")[-2000:])
        last, why = told[-1], signal.Signals(-done.returncode).name
        content = (Path(work) / last["name"]).read_bytes()
        problem = f"{why} {done.stderr.decode(errors='replace')[-200:]!r}"
        findings.setdefault(f"{last['reader']}: {why}", {**last, "problem": problem, "hex": content.hex()})
        return int(last["round"]) - first + 1


def fuzz(readers: list[str], *, seed: int = 0, rounds: int = 500, seconds: float = 0) -> Findings:
    """Read damaged files, in rounds for each reader until the time is over; return what went wrong, each kind once."""
    findings: Findings = {}
    begun, first = time.monotonic(), 0
    while True:
        first += _batch(readers, first, min(rounds, ROUNDS_PER_CHILD), seed, findings)
        if first >= rounds and time.monotonic() - begun >= seconds:
            return findings


def main() -> None:
    """Run the fuzzer, or one of its children."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reader", action="append", choices=list(READERS), help="all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=500, help="files for each reader, at least")
    parser.add_argument("--seconds", type=float, default=0, help="how long, at least")
    parser.add_argument("--findings", type=Path, help="a folder for the files that were read wrongly")
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        return _child(asked)
    findings = fuzz(asked.reader or list(READERS), seed=asked.seed, rounds=asked.rounds, seconds=asked.seconds)
    for number, one in enumerate(findings.values()):
        print(f"{one['reader']}: {one['problem']}", flush=True)
        if asked.findings is not None:
            asked.findings.mkdir(parents=True, exist_ok=True)
            (asked.findings / f"{one['reader']}--{number}--{one['name']}").write_bytes(bytes.fromhex(one["hex"]))
    raise SystemExit(1 if findings else 0)


if __name__ == "__main__":
    main()
