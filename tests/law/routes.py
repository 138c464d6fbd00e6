"""Routes of the law: every way by which the same question can be asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl
from brute import Answer, Setting
from world import World

import cranfield as cf
from cranfield.cli import main

COMPARED = (
    "mean",
    "weighted(by=judged)",
    "weighted(by=relevant)",
    "weighted(by=train)",
    "geometric",
    "urisk(baseline=alpha)",
)
"""The averages that a comparison can test."""


class Route(NamedTuple):
    """What holds the lists, which engine measures them, and who is asked."""

    source: str
    engine: str
    entry: str

    def __str__(self) -> str:
        return " ".join(self)


ROUTES = [
    *(
        Route(source, "memory", "python")
        for source in ("csv", "parquet", "trec", "frame", "pandas", "dict", "run", "judged")
    ),
    *(Route("parquet", engine, "python") for engine in ("ranges", "spilled")),
    *(Route(source, "memory", "command") for source in ("csv", "parquet", "trec")),
    *(Route("parquet", engine, "command") for engine in ("ranges", "spilled")),
    Route("csv", "memory", "experiment"),
]

SPARK = [Route("parquet", "spark", "python"), Route("parquet", "spark", "command")]


@dataclass
class Compared:
    """What a comparison says: the p-values and differences of the pairs, and the sentences."""

    pairs: dict
    verdict: tuple[str, ...]


def can_hold(route: Route, world: World, setting: Setting, predictions: bool) -> bool:
    """Return whether the format of a route has a place for everything that the world has."""
    if route.source == "trec" and (world.form != "scores" or predictions):
        return False
    return route.entry != "experiment" or setting.train


def write(world: World, folder: Path, dropped: list[str]) -> None:
    """Write ratings and lists in every format, without the columns that are dropped."""
    for name, rows in (("test", world.test), ("train", world.train)):
        frame = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
        frame.write_csv(folder / f"{name}.csv")
        frame.write_parquet(folder / f"{name}.parquet")
    pl.DataFrame({"user": list(world.segment), "side": list(world.segment.values())}).write_csv(folder / "users.csv")
    pl.DataFrame({"item": world.catalogue}).write_csv(folder / "items.csv")
    for name in world.lists:
        frame = table(world, name).drop(dropped)
        frame.write_csv(folder / f"{name}.csv")
        frame.write_parquet(folder / f"{name}.parquet")
        if world.form == "scores":
            lines = (
                f"{user} Q0 {item} 1 {'nan' if score is None else score} {name}\n"
                for user, item, score, *_ in world.lists[name]
            )
            (folder / f"{name}.trec").write_text("".join(lines))


def table(world: World, name: str) -> pl.DataFrame:
    """Return the lists of a system as a frame."""
    users, items, scores, ranks, predictions = map(list, zip(*world.lists[name]))
    order = {"scores": {"score": pl.Series(scores, dtype=pl.Float64)}, "ranks": {"rank": ranks}, "order": {}}[
        world.form
    ]
    return pl.DataFrame({"user": users, "item": items, **order, "prediction": pl.Series(predictions, dtype=pl.Float64)})


class Asker:
    """Asks the same question by any route; the files of the world are in a folder."""

    def __init__(self, world: World, setting: Setting, folder: Path, predictions: bool, spark=None) -> None:
        self.world, self.setting, self.folder, self.spark = world, setting, folder, spark
        self.dropped = [] if predictions else ["prediction"]
        write(world, folder, self.dropped)

    def ask(self, route: Route, compared: dict | None) -> tuple[Answer, Compared | None]:
        """Return the answer of a route and, with options of a comparison, what that says."""
        return getattr(self, f"_{route.entry}")(route, compared)

    # ------------------------------------------------------------------ Python

    def _python(self, route: Route, compared: dict | None) -> tuple[Answer, Compared | None]:
        scores = self.scores(route)
        setting = self.setting
        averaging = {"coverage": setting.coverage, "undefined": setting.undefined}
        segments = {}
        if setting.segment != "none":
            by = "activity" if setting.segment == "activity" else f"{self.folder / 'users.csv'}:side"
            frame = scores.segments(by, train=self._train()).frame(setting.average, **averaging)
            segments = {
                (row["group"], row["system"], row["metric"]): row["mean"] for row in frame.iter_rows(named=True)
            }
        averages = scores.frame(setting.average, **averaging)
        answer = _answer(scores.step.settings["threshold"], scores.per_user(), averages, segments)
        answer.notes = tuple(map(str, scores.notes))
        if compared is None:
            return answer, None
        result = cf.compare(scores, average=setting.average, **averaging, **compared)
        return answer, _compared(result.frame(detail=True), result.verdict)

    def scores(self, route: Route) -> cf.Scores:
        setting = self.setting
        lists = setting.lists
        options = {
            "train": self._train(), "gaps": setting.gaps, "ties": setting.ties, "threshold": setting.threshold,
            "catalogue": {"none": "none", "train": "train", "file": self.world.catalogue}[setting.catalogue],
        }  # fmt: skip
        held = self._test(route)
        names = list(self.world.lists)
        if route.engine == "spark":
            runs = {name: self.spark.read.parquet(str(self.folder / f"{name}.parquet")) for name in names}
        elif route.source in ("csv", "parquet", "trec"):
            runs = {name: self.folder / f"{name}.{route.source}" for name in names}
            if route.engine != "memory":
                options["engine"] = "ranges"
        else:
            runs = {name: self._held(route.source, name) for name in names}
        if route.source == "run":
            runs = list(runs.values())
        if route.source == "judged":
            # Judged lists keep the threshold that was chosen when they were judged, from the same ratings.
            runs = [cf.judge(run, held, train=options["train"]) for run in runs.values()]
            del options["ties"], options["gaps"]
            held = None
        return cf.measure(runs, held, list(setting.metrics), lists=lists, **options)

    def _held(self, source: str, name: str):
        frame = table(self.world, name).drop(self.dropped)
        if source == "frame":
            return frame
        if source == "pandas":
            return frame.to_pandas()
        if source == "dict":
            if "prediction" in frame.columns or self.world.form == "ranks":
                return frame.to_dict(as_series=False)
            lists: dict = {}
            for user, item, score, *_ in self.world.lists[name]:
                row = item if self.world.form == "order" else (item, float("nan") if score is None else score)
                lists.setdefault(user, []).append(row)
            return lists
        return cf.read_run(frame, name=name, ties=self.setting.ties, gaps=self.setting.gaps)

    def _test(self, route: Route):
        if route.engine == "spark" and self.setting.repeated == "error":
            return self.spark.read.parquet(str(self.folder / "test.parquet"))
        path = self.folder / ("test.parquet" if route.engine != "memory" else "test.csv")
        return path if self.setting.repeated == "error" else cf.read(path, repeated=self.setting.repeated)

    def _train(self):
        return cf.read(self.folder / "train.csv", repeated=self.setting.repeated) if self.setting.train else None

    # ------------------------------------------------------------------ command line

    def _command(self, route: Route, compared: dict | None) -> tuple[Answer, Compared | None]:
        folder, setting = self.folder, self.setting
        runs = [folder / f"{name}.{route.source}" for name in self.world.lists]
        ratings = "csv" if route.source == "trec" else route.source
        shared = [
            "--test",
            folder / f"test.{ratings}",
            *runs,
            "-q",
            "--read",
            f"repeated={setting.repeated}",
            "--ties",
            setting.ties,
        ]
        shared += ["--read-runs", f"gaps={setting.gaps}", "--lists", setting.lists, "--threshold", setting.threshold]
        shared += ["--average", setting.average, "--undefined", setting.undefined, "--coverage", setting.coverage]
        shared += [word for metric in setting.metrics for word in ("-m", metric)]
        shared += ["--train", folder / f"train.{ratings}"] if setting.train else []
        if setting.catalogue != "none":
            shared += ["--catalogue", "train" if setting.catalogue == "train" else folder / "items.csv"]
        if setting.segment != "none":
            shared += ["--segment", "activity" if setting.segment == "activity" else f"{folder / 'users.csv'}:side"]
        if route.engine != "memory":
            shared += ["--engine", "spark" if route.engine == "spark" else "ranges"]
        values = folder / f"values-{route.engine}.parquet"
        _run("evaluate", *shared, "--per-user", values, "--out", folder / "evaluated.json")
        found = json.loads((folder / "evaluated.json").read_text())
        rows = found["rows"] if isinstance(found, dict) else found
        segments = {}
        if setting.segment != "none":
            segments = {
                (row["group"], row["system"], row["metric"]): row["mean"]
                for row in rows
                if row.get("group") is not None
            }
            rows = [row for row in rows if row.get("group") is None]
        answer = _answer(None, pl.read_parquet(values), pl.DataFrame(rows, infer_schema_length=None), segments)
        if compared is None:
            return answer, None
        further = [word for name, value in compared.items() for word in (f"--{name}", value)]
        _run("compare", *shared, *further, "--out", folder / "compared.json")
        found = json.loads((folder / "compared.json").read_text())
        return answer, _compared(pl.DataFrame(found["rows"], infer_schema_length=None), tuple(found["verdict"]))

    # ------------------------------------------------------------------ experiment file

    def _experiment(self, route: Route, compared: dict | None) -> tuple[Answer, Compared | None]:
        setting, options = self.setting, compared or {}
        catalogue = {"none": "none", "train": "train", "file": "items.csv"}[setting.catalogue]
        threshold = f'"{setting.threshold}"' if isinstance(setting.threshold, str) else setting.threshold
        segment = {"none": "[]", "activity": '["activity"]', "file": '["users.csv:side"]'}[setting.segment]
        systems = "\n".join(
            f'{name} = {{ run = "{name}.csv", ties = "{setting.ties}", gaps = "{setting.gaps}" }}'
            for name in self.world.lists
        )
        (self.folder / "law.toml").write_text(
            f'[decisions]\nsplit = "predefined(overlap=test)"\nmetrics = {json.dumps(list(setting.metrics))}\n'
            f'average = "{setting.average}"\nundefined = "{setting.undefined}"\ncoverage = "{setting.coverage}"\n'
            f'threshold = {threshold}\nlists = "{setting.lists}"\ncatalogue = "{catalogue}"\nsegment = {segment}\n'
            + "".join(f'{name} = "{value}"\n' for name, value in options.items())
            + f'[data.world]\ntrain = "train.csv"\ntest = "test.csv"\nrepeated = "{setting.repeated}"\n'
            + f"[systems]\n{systems}\n"
        )
        _run("run", self.folder / "law.toml", "--no-report", "-q")
        found = cf.experiments.Results(self.folder / "law").findings("world")
        averages = found.scores.frame(setting.average, coverage=setting.coverage, undefined=setting.undefined)
        segments = {}
        if setting.segment != "none":
            rows = pl.read_parquet(self.folder / "law/results/world/segments.parquet").iter_rows(named=True)
            segments = {(row["group"], row["system"], row["metric"]): row["mean"] for row in rows}
        answer = _answer(found.scores.step.settings["threshold"], found.scores.per_user(), averages, segments)
        comparison = found.comparison
        return answer, None if compared is None else _compared(comparison.frame(detail=True), comparison.verdict)


class Refused(Exception):
    """A command ended with exit code 2; the message is what it said."""


def _run(*words: object) -> None:
    import contextlib
    import io

    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
        try:
            main([str(word) for word in words])
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
    if code:
        raise Refused(err.getvalue().strip())


def _answer(threshold: float | None, values: pl.DataFrame, averages: pl.DataFrame, segments: dict) -> Answer:
    rows = list(averages.iter_rows(named=True))
    keyed: Callable = lambda column: {(row["system"], row["metric"]): row.get(column) for row in rows}  # noqa: E731
    of_users = {(row["system"], row["metric"], row["user"]): row["value"] for row in values.iter_rows(named=True)}
    return Answer(threshold, of_users, keyed("mean"), {}, segments, keyed("filled"), keyed("unjudged"))


def _compared(frame: pl.DataFrame, verdict: tuple[str, ...]) -> Compared:
    pairs = {}
    for row in frame.iter_rows(named=True):
        flip = row["system_a"] > row["system_b"]
        first, second = (row["system_b"], row["system_a"]) if flip else (row["system_a"], row["system_b"])
        sign = -1 if flip else 1
        pairs[row["metric"], first, second] = (
            None if row["difference"] is None else sign * row["difference"],
            row["p"],
            row["p_corrected"],
        )
    return Compared(pairs, tuple(verdict))
