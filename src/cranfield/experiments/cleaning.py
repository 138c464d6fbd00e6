"""Find and remove what a folder holds besides the current experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from cranfield._errors import InputError
from cranfield._table import Table
from cranfield.experiments.showing import bytes_text
from cranfield.store import HOME, Record, Root, Store, check_folder, in_use, open_store

_NOBODY = "no experiment"


@dataclass(frozen=True, eq=False)
class Spare:
    """The artifacts of a folder that the current experiment does not use.

    Parameters
    ----------
    artifacts
        See `frame`.
    freed
        Whether they were removed.
    """

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
    used, earlier = store.reachable([current]), [root for root in store.roots.all() if root != current]
    spare = {key: record for key, record in store.records().items() if key not in used}
    # With ``free`` this process holds the store. Otherwise a half-made artifact may be one that another run is writing.
    half_made = store.half_made() if free or not in_use(store.path) else {}
    named = _named(spare, earlier)
    rows = [(*named[key], spare[key].size) for key in named]
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


def _named(spare: dict[str, Record], roots: list[Root]) -> dict[str, tuple[str, str]]:
    """Return the experiment and the name of each artifact, grouped by experiment."""
    named: dict[str, tuple[str, str]] = {}
    for root in roots:
        for name, key in root.artifacts.items():
            if key in spare:
                named.setdefault(key, (root.title, name))
    return named | {key: (_NOBODY, record.name) for key, record in spare.items() if key not in named}
