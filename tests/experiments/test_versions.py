"""The versions in the keys of the store: what each stage, system, metric, split and filter makes of a tiny world.

``digests.json`` has a digest of each, and the version that made it. If a change of the code makes something else of the
same inputs, raise the ``version`` of the stage or the system, so that older artifacts are not taken for new ones, and
write the digests again: ``python tests/experiments/test_versions.py``.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import cranfield as cf
from cranfield.audits.auditing import Audited
from cranfield.data import filters
from cranfield.experiments import run
from cranfield.experiments.stages import DATA, MODELS, SCORES, SPLITS, STAGES
from cranfield.metrics import known_metrics
from cranfield.recommenders import SYSTEMS, recommender
from cranfield.splits import apply
from cranfield.splits import registry as splits

FILE = Path(__file__).with_name("digests.json")

CLOSE = 1e-9
"""Numbers that differ by less, relative to the largest, are the same: processors add in different orders."""

SINGLE = {"bprmf", "ials", "mf-pointwise", "wrmf", "rm2", "plsa", "lda", "audit"}
"""What is computed in single precision, and so is the same to 1e-6."""

ELSEWHERE = {"neumf", "gmf", "mlp", "lc-nn", "bpr-triplet", "spark-als"}
"""Systems whose digits depend on the version of other software."""

EXPERIMENT = """
[systems]
popularity = "popularity"
other = "random"
near = { system = "knn", search = { k = [3, 5] } }
[decisions]
split = "random(train=0.7, validation=0.2)"
metrics = ["P@10", "nDCG@10"]
segment = ["activity"]
[data.tiny]
simulate = "world(users=60, items=80, ratings=1200)"
[assess]
samples = 3
sizes = [1, 0.5]
[audit.vary]
lists = ["full", "condensed"]
cutoff = [5, 10]
"""
CALIBRATED = """
[systems]
near = "knn(k=5)"
[decisions]
calibration = "linear"
metrics = ["RMSE"]
[data.tiny]
simulate = "world(users=60, items=80, ratings=1200)"
"""

# What has no default.
GIVEN = {
    "train_per_item": "train_per_item(l=3)",
    "rolling": "rolling(windows=2, horizon=300d)",
    "min_ratings": "min_ratings(user=6)",
    "max_ratings": "max_ratings(user=12)",
    "time_window": "time_window(start=2002-01-01)",
    "positives": "positives(threshold=4)",
    "Coverage": "Coverage@5",
}


def digest(thing):
    """Return a hash of everything but fractions, two weighted means of the fractions, and their largest."""
    exact, fractions = hashlib.sha256(), [np.zeros(1)]

    def add(part):
        if isinstance(part, Mapping):
            for name in sorted(part):
                exact.update(f"{name}:".encode())
                add(part[name])
        elif isinstance(part, list | tuple):
            exact.update(f"{len(part)}:".encode())
            for one in part:
                add(one)
        elif isinstance(part, pl.DataFrame):
            add({name: part[name].to_numpy() for name in part.columns if "second" not in name})
        elif isinstance(part, np.ndarray) and part.dtype.kind == "f":
            exact.update(np.isfinite(part).tobytes())
            fractions.append(np.nan_to_num(part.astype(np.float64), posinf=0, neginf=0).ravel())
        elif isinstance(part, np.ndarray):
            add(part.ravel().tolist())
        elif isinstance(part, float):
            add(np.array([part]))
        else:
            exact.update(f"{part}|".encode())

    add(thing)
    numbers = np.concatenate(fractions)
    places = np.arange(1.0, len(numbers) + 1)
    told = [(numbers * np.sin(places)).mean(), (numbers * np.cos(places)).mean(), np.abs(numbers).max()]
    return [exact.hexdigest()[:12], *(float(f"{number:.12g}") for number in told)]


def is_same(name, one, other):
    """Whether two digests are of the same thing, up to rounding."""
    near = (1e-6 if name in SINGLE else CLOSE) * one[3]
    return one[0] == other[0] and all(abs(a - b) <= near for a, b in zip(one[1:], other[1:]))


def _contents(path):
    """Return the contents of a file of an artifact, without the versions of software."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: _plain(str(arrays[name])) if name == "about" else arrays[name] for name in arrays.files}
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    text = re.sub(r"## Versions.*?\n## |cranfield [\d.]+", "", path.read_text(), flags=re.DOTALL)
    if path.suffix == ".csv":
        return pl.read_csv(io.StringIO(text))
    return _plain(text) if path.suffix == ".json" else text


def _plain(text):
    read = json.loads(text)
    return {name: read[name] for name in read if name not in ("versions", "cranfield")}


def of_stages():
    """Yield each stage with its version and the digest of its first artifact."""
    made = {}
    versions = {stage.name: stage.version for stage in (*STAGES, Audited())}
    with tempfile.TemporaryDirectory() as folder:
        for name, text, further in (("whole", EXPERIMENT, [Audited()]), ("calibrated", CALIBRATED, [])):
            file = Path(folder) / f"{name}.toml"
            file.write_text(text)
            for artifact in run(file, extra_stages=further).line.artifacts.values():
                contents = [_contents(artifact.path(part)) for part in sorted(artifact.files)]
                made.setdefault(artifact.name.split("/")[0], digest([contents, dict(artifact.facts)]))
    return {name: [versions[name], told] for name, told in made.items()}


def _ratings():
    return cf.simulate.world(30, 20, 260, seed=3).ratings


def of_systems():
    ratings = _ratings()
    models = {name: recommender(name, seed=1) for name in SYSTEMS.entries() if name not in ELSEWHERE}
    users = np.arange(ratings.n_users)
    return {name: [model.version, digest(model.fit(ratings).score(users))] for name, model in models.items()}


def of_metrics():
    """Lists whose items, ranks and predicted ratings follow a rule; some users have no list."""
    test, train = _ratings(), cf.simulate.world(30, 20, 260, seed=4).ratings
    rows = [(u, (7 * u + 3 * k) % 23, k + 1, 1.0 + (u + k) % 9 / 2) for u in range(27) for k in range(4 + u % 9)]
    lists = pl.DataFrame(rows, schema=["user", "item", "rank", "prediction"], orient="row")
    names = [name for name, metric in known_metrics().items() if metric.family != "own"]
    scores = cf.measure(
        cf.read_run(lists, name="mine"), test, [GIVEN.get(name, name) for name in names], train=train, threshold=4
    )
    assert scores.overall is not None
    whole = np.where(np.isnan(scores.overall), scores.average(undefined="leave out"), scores.overall)[0]
    told = [digest([values, mean]) for values, mean in zip(scores.values[0], whole.tolist())]
    return {name: [SCORES.version, one] for name, one in zip(names, told)}


def of_splits():
    ratings = _ratings()

    def parts(split):
        kept = {"train": split.train, "test": split.test, "validation": split.validation, "profiles": split.profiles}
        return {name: part.frame().to_dict(as_series=False) for name, part in kept.items() if part is not None}

    return {
        name: [SPLITS.version, digest([parts(one) for one in apply(ratings, GIVEN.get(name, name), seed=1)])]
        for name in splits.entries()
    }


def of_filters():
    ratings = _ratings()
    return {
        name: [DATA.version, digest(filters.apply(ratings, [GIVEN.get(name, name)]).frame().to_dict(as_series=False))]
        for name in filters.registry.entries()
    }


MADE = {
    "stages": of_stages,
    "systems": of_systems,
    "metrics": of_metrics,
    "splits": of_splits,
    "filters": of_filters,
}


def changed(kind, now, before):
    """Return what differs from the committed digests, in sentences."""
    for name in sorted({*now, *before}):
        if name not in now or name not in before or now[name][0] != before[name][0]:
            yield f"{kind}, {name}: new, gone, or of another version; run {Path(__file__).name} to write the digests"
        elif not is_same(name, before[name][1], now[name][1]):
            yield f"{kind}, {name}: makes something else of the same inputs; raise its version, which is in the key"


@pytest.mark.parametrize("kind", MADE)
def test_what_is_made_of_the_same_inputs_changes_only_with_the_version(kind):
    assert list(changed(kind, MADE[kind](), json.loads(FILE.read_text())[kind])) == []


def test_a_digest_tells_a_change_from_rounding():
    numbers = np.linspace(0, 1, 500)
    one = digest([numbers, "text", 3])
    assert is_same("x", one, digest([numbers * (1 + 1e-13), "text", 3]))
    other = numbers.copy()
    other[200] += 1e-5
    for different in ([other, "text", 3], [numbers[::-1], "text", 3], [numbers, "texts", 3], [numbers, "text", 4]):
        assert not is_same("x", one, digest(different))


@pytest.mark.parametrize("what", [type(MODELS), type(SCORES), SYSTEMS.entries()["knn"].thing])
def test_a_raised_version_makes_the_artifact_again(tiny, tiny_folder, monkeypatch, what):
    before = run(tiny(), tiny_folder).line.artifacts
    monkeypatch.setattr(what, "version", what.version + 1)
    after = run(tiny(), tiny_folder).line.artifacts
    made = {name for name in before if before[name].key != after[name].key}
    models = {"models/tiny/near", "models/tiny/popularity", "models/tiny/random"}
    expected = {type(MODELS): models, type(SCORES): {"scores/tiny"}}.get(what, {"models/tiny/near"})
    assert made == expected  # its bytes are the same, so nothing after it is made again


if __name__ == "__main__":
    known = json.loads(FILE.read_text()) if FILE.exists() else {kind: {} for kind in MADE}
    new = {kind: make() for kind, make in MADE.items()}
    unraised = [one for kind in MADE for one in changed(kind, new[kind], known[kind]) if "raise" in one]
    if unraised and "--anyway" not in sys.argv:
        sys.exit("\n".join(unraised))
    lines = {
        kind: ",\n".join(f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(entries.items()))
        for kind, entries in new.items()
    }
    FILE.write_text("{\n" + ",\n".join(f'"{kind}": {{\n{text}\n}}' for kind, text in lines.items()) + "\n}\n")
