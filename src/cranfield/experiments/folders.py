"""The folder of an experiment: `show` says what it contains, `clean` removes what the experiment does not use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from cranfield._errors import InputError
from cranfield._numbers import count_text, time_text
from cranfield._table import Table
from cranfield.experiments.results import Results
from cranfield.experiments.stages import ORDER
from cranfield.store import HOME, Store, check_folder, in_use, open_store, size_of


@dataclass(frozen=True, eq=False)
class Shown:
    """The contents of an experiment's folder; ``artifacts`` is what `frame` returns."""

    results: Results
    artifacts: pl.DataFrame

    def frame(self) -> pl.DataFrame:
        """Return one row per artifact: ``stage, artifact, files, bytes, stored, seconds, damaged``.

        ``files`` and ``bytes`` count the readable files; ``stored`` is the number of bytes in the store. ``seconds`` is
        null if the log does not say how long it took.
        """
        return self.artifacts

    def table(self) -> Table:
        """Return a readable table with one row per stage."""
        stages = self.artifacts.group_by("stage", maintain_order=True).agg(
            pl.len(), pl.col("bytes").sum(), pl.col("stored").sum(), pl.col("seconds").sum(), pl.col("damaged").sum()
        )
        rows = [
            [stage, f"{count:,}", bytes_text(size), bytes_text(stored), time_text(seconds), str(damaged or "–")]
            for stage, count, size, stored, seconds, damaged in stages.iter_rows()
        ]
        return Table(["stage", "artifacts", "files", "stored", "time", "damaged"], rows)

    def __str__(self) -> str:
        experiment = self.results.experiment
        if self.results.finished and len(self.results.data) == 1:
            experiment = replace(experiment, decisions=self.results.decided(*self.results.data))
        seed = f"seed {experiment.seed}, {count_text(experiment.repetitions, 'repetition')}"
        said = [experiment.title, str(experiment), seed, "", self.table().text(), ""]
        damaged = self.artifacts.filter("damaged")["artifact"].to_list()
        if damaged:
            said.append(f"missing or damaged: {', '.join(damaged)}; run the experiment again to make them again")
        if not self.results.finished:
            return "\n".join([*said, "not finished; run the experiment again to continue"])
        said.append("" if any(name.startswith(_IN_VERDICTS) for name in damaged) else str(self.results))
        missing = [] if "card" in damaged else self.results.missing()
        return "\n".join([*said, *([f"not reported: {'; '.join(missing)}"] if missing else [])]).rstrip()


def show(folder: str | Path) -> Shown:
    """Return what was run in a folder, its artifacts with sizes and times, and the verdict.

    Every file is compared with its checksum.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.experiments import Experiment, Source, run
    >>> folder = tempfile.mkdtemp()
    >>> _ = run(Experiment(data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),)), folder)
    >>> found = show(folder)
    >>> found.frame()["stage"].unique(maintain_order=True).to_list()
    ['experiment', 'data', 'splits', 'models', 'runs', 'judged', 'scores', 'results', 'card']
    """
    results = Results(folder)
    store, exports = results.line.store, results.line.exports
    took, rows = store.took(), []
    for name, artifact in results.line.artifacts.items():
        files = [results.path / file for file in exports.files(name)]
        stored = size_of(artifact.path(file) for file in artifact.files)
        damaged = not store.whole(artifact) or exports.damaged(artifact)
        rows.append((name.split("/", 1)[0], name, len(files), size_of(files), stored, took.get(name), damaged))
    rows.sort(key=lambda row: ORDER.index(row[0]) if row[0] in ORDER else len(ORDER))
    return Shown(results, pl.DataFrame(rows, schema=_SCHEMA, orient="row"))


_IN_VERDICTS = ("data/", "scores/", "results/", "segments/", "assess/")

_SCHEMA = {
    **dict.fromkeys(("stage", "artifact"), pl.String),
    **dict.fromkeys(("files", "bytes", "stored"), pl.Int64),
    "seconds": pl.Float64,
    "damaged": pl.Boolean,
}


def bytes_text(count: int) -> str:
    """Return a number of bytes in readable units."""
    power = min((len(str(count)) - 1) // 3, 3)
    return f"{count} B" if power == 0 else f"{count / 1000**power:.1f} {('B', 'kB', 'MB', 'GB')[power]}"


_NOBODY = "no experiment"


@dataclass(frozen=True, eq=False)
class Spare:
    """The artifacts of a folder that the current experiment does not use, and whether they were removed."""

    artifacts: pl.DataFrame
    freed: bool

    def frame(self) -> pl.DataFrame:
        """Return one row per artifact: ``experiment, artifact, bytes``.

        ``experiment`` is the title of an earlier experiment in the folder that uses it; ``artifact`` is its name, or
        ``half made/`` and the beginning of its key.
        """
        return self.artifacts

    def table(self) -> Table:
        """Return a readable table with one row per experiment and stage."""
        stage = pl.col("artifact").str.split("/").list.first()
        summed = self.artifacts.group_by("experiment", stage.alias("stage"), maintain_order=True).agg(
            pl.len(), pl.col("bytes").sum()
        )
        rows = [[kind, stage, f"{count:,}", bytes_text(size)] for kind, stage, count, size in summed.iter_rows()]
        return Table(["experiment", "stage", "artifacts", "size"], rows)

    def __str__(self) -> str:
        if self.artifacts.is_empty():
            return "nothing to free: the current experiment uses everything"
        total = bytes_text(int(self.artifacts["bytes"].sum()))
        did = f"{total} were freed" if self.freed else f"{total} can be freed; add --yes to free them"
        return f"{self.table().text()}\n\n{did}"


def clean(folder: str | Path, *, free: bool = False) -> Spare:
    """List the artifacts in a folder that the current experiment does not use, and remove them if ``free``.

    The current experiment is the one that was run last. Artifacts that it uses are never removed, nor are files that
    cranfield did not make or that were changed since. Half-made artifacts of a stopped run (folders of the store
    without a record) belong to no experiment; they are listed unless a run is active in the folder.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.experiments import Decisions, Experiment, Source, run
    >>> folder, tiny = tempfile.mkdtemp(), (Source("tiny", simulate="world(users=60, items=40, ratings=900)"),)
    >>> for threshold in (3, 4):
    ...     _ = run(Experiment(data=tiny, decisions=Decisions(metrics="P@10", threshold=threshold)), folder)
    >>> clean(folder, free=True).frame()["artifact"].to_list()
    ['experiment', 'scores/tiny', 'results/tiny', 'card']
    >>> print(clean(folder))
    nothing to free: the current experiment uses everything
    """
    path = Path(folder)
    if not (path / HOME).is_dir():
        raise InputError("it is not the folder of an experiment", source=path, remedy="name one that cranfield made")
    check_folder(path)
    if not free:
        return _spare(Store(path), free=False)
    with open_store(path) as store:
        return _spare(store, free=True)


def _spare(store: Store, *, free: bool) -> Spare:
    current = store.roots.current(sure=True)
    if current is None:
        raise InputError(
            "it does not say which experiment is the current one", source=store.path, remedy="run that one again"
        )
    earlier = [root for root in store.roots.all() if root != current]
    spare = {key: record for key, record in store.records().items() if key not in current.artifacts.values()}
    # With ``free`` this process holds the store. Otherwise a half-made artifact may be one that another run is writing.
    half_made = store.half_made() if free or not in_use(store.path) else {}
    # The experiment and the name of each artifact, grouped by experiment.
    named: dict[str, tuple[str, str]] = {}
    for root in earlier:
        for name, key in root.artifacts.items():
            if key in spare:
                named.setdefault(key, (root.title, name))
    named |= {key: (_NOBODY, record.name) for key, record in spare.items() if key not in named}
    rows = [(*named[key], size_of(spare[key].home / file for file in spare[key].files)) for key in named]
    rows += [(_NOBODY, f"half made/{key[:12]}", size) for key, size in half_made.items()]
    frame = pl.DataFrame(rows, schema={"experiment": pl.String, "artifact": pl.String, "bytes": pl.Int64}, orient="row")
    if free:
        # Roots go first: if this is interrupted, no root refers to missing artifacts, and a later run starts afresh.
        with store.writing():
            for root in earlier:
                store.roots.forget(root)
        for key in spare:
            store.free(key)
        for key in half_made:
            store.free_half_made(key)
        store.log(did="cleaned", artifacts=len(rows))
    return Spare(frame, free)
