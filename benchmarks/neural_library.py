"""Measure PyTorch and JAX with Optax, to choose the library for the neural systems.

Both do the same work: epochs of NeuMF (He et al. 2017: 8 factors, a tower of 64, 32, 16 and 8, 4 sampled negatives per
rating, Adam) on the training part of the NCF benchmark of MovieLens 1M. Run this script once in an environment of each
library. Training times exclude drawing the negatives, which both share.

    python benchmarks/neural_library.py torch --data ml-1m.parquet
    python benchmarks/neural_library.py jax --data ml-1m.parquet
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

FACTORS, TOWER, NEGATIVES, RATE = 8, (64, 32, 16, 8), 4, 0.001
PACKAGES = {
    "torch": ("torch", "sympy", "networkx", "mpmath", "jinja2", "fsspec", "filelock"),
    "jax": ("jax", "jaxlib", "optax", "ml_dtypes", "opt_einsum", "absl-py"),
}
Samples = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def samples(data: str, share: float) -> tuple[Samples, int, int]:
    """Return users, items and labels in random order, and the number of users and of items."""
    frame = pl.read_parquet(data)
    users = frame["user"].rank("dense").to_numpy().astype(np.int32) - 1
    items = frame["item"].rank("dense").to_numpy().astype(np.int32) - 1
    n_users, n_items = int(users.max()) + 1, int(items.max()) + 1
    draw = np.random.default_rng(0)
    seen = np.zeros((n_users, n_items), dtype=bool)
    seen[users, items] = True
    again = np.repeat(users, NEGATIVES)
    negatives = draw.integers(0, n_items, len(again), dtype=np.int32)
    while (hits := seen[again, negatives]).any():
        negatives[hits] = draw.integers(0, n_items, int(hits.sum()), dtype=np.int32)
    users, items = np.concatenate([users, again]), np.concatenate([items, negatives])
    labels = (np.arange(len(users)) < len(frame)).astype(np.float32)
    order = draw.permutation(len(users))[: int(share * len(users))]
    return (users[order], items[order], labels[order]), n_users, n_items


def start(n_users: int, n_items: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return the weights that training starts from."""
    draw = np.random.default_rng(1)
    half = TOWER[0] // 2
    shapes = {"pg": (n_users, FACTORS), "qg": (n_items, FACTORS), "pm": (n_users, half), "qm": (n_items, half)}
    weights = {name: draw.normal(0, 0.01, shape) for name, shape in shapes.items()}
    for layer, (wide, narrow) in enumerate(pairwise(TOWER)):
        weights[f"w{layer}"] = draw.normal(0, np.sqrt(2 / wide), (wide, narrow))
        weights[f"b{layer}"] = np.zeros(narrow)
    weights["h"] = draw.normal(0, 0.25, (FACTORS + TOWER[-1],))
    return {name: array.astype(np.float32) for name, array in weights.items()}


def torch_epoch(weights: dict[str, Any], threads: int, batch: int) -> Callable[[Samples], dict[str, Any]]:
    """Return a function that runs an epoch in PyTorch and returns the weights."""
    import torch

    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(True)
    w = {name: torch.tensor(array, requires_grad=True) for name, array in weights.items()}
    adam = torch.optim.Adam(list(w.values()), lr=RATE, fused=True)

    def epoch(given: Samples) -> dict[str, Any]:
        users, items, labels = (torch.from_numpy(array) for array in given)
        embed = torch.nn.functional.embedding
        for first in range(0, len(users) - batch + 1, batch):
            u, i, y = (array[first : first + batch] for array in (users, items, labels))
            adam.zero_grad(set_to_none=True)
            hidden = torch.cat([embed(u, w["pm"]), embed(i, w["qm"])], dim=1)
            for layer in range(len(TOWER) - 1):
                hidden = torch.relu(torch.addmm(w[f"b{layer}"], hidden, w[f"w{layer}"]))
            logit = torch.cat([embed(u, w["pg"]) * embed(i, w["qg"]), hidden], dim=1) @ w["h"]
            torch.nn.functional.binary_cross_entropy_with_logits(logit, y).backward()
            adam.step()
        return {name: array.detach().numpy() for name, array in w.items()}

    return epoch


def jax_epoch(weights: dict[str, Any], threads: int, batch: int) -> Callable[[Samples], dict[str, Any]]:  # noqa: ARG001
    """Return a function that runs an epoch in JAX, as one compiled loop over batches, and returns the weights."""
    import jax
    import jax.numpy as jnp
    import optax

    adam = optax.adam(RATE)

    def loss(w: Any, u: Any, i: Any, y: Any) -> Any:
        hidden = jnp.concatenate([w["pm"][u], w["qm"][i]], axis=1)
        for layer in range(len(TOWER) - 1):
            hidden = jax.nn.relu(hidden @ w[f"w{layer}"] + w[f"b{layer}"])
        logit = jnp.concatenate([w["pg"][u] * w["qg"][i], hidden], axis=1) @ w["h"]
        return optax.sigmoid_binary_cross_entropy(logit, y).mean()

    @jax.jit
    def run(w: Any, state: Any, *batches: Any) -> Any:
        def step(carry: Any, given: Any) -> Any:
            w, state = carry
            updates, state = adam.update(jax.grad(loss)(w, *given), state)
            return (optax.apply_updates(w, updates), state), None

        return jax.lax.scan(step, (w, state), batches)[0]

    held = [weights, adam.init(weights)]

    def epoch(given: Samples) -> dict[str, Any]:
        whole = len(given[0]) // batch
        held[:] = run(*held, *(array[: whole * batch].reshape(whole, batch) for array in given))
        return {name: np.asarray(array) for name, array in held[0].items()}

    return epoch


def measure(library: str, data: str, threads: int, batch: int, share: float) -> dict[str, Any]:
    """Train in this process, and return the seconds and a hash of the weights."""
    began = time.perf_counter()
    __import__("torch" if library == "torch" else "optax")
    imported = time.perf_counter() - began
    given, n_users, n_items = samples(data, share)
    epoch = (torch_epoch if library == "torch" else jax_epoch)(start(n_users, n_items), threads, batch)
    seconds, processor = [], []
    for _ in range(2):  # the first epoch of JAX compiles
        began, used = time.perf_counter(), time.process_time()
        weights = epoch(given)
        seconds.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    digest = hashlib.sha256(b"".join(weights[name].tobytes() for name in sorted(weights))).hexdigest()[:12]
    return {"import": imported, "first": seconds[0], "second": seconds[1], "processor": processor[1], "weights": digest}


def installed(library: str) -> float:
    """Return the MiB that the library and its own dependencies take on disk."""
    files = [file for name in PACKAGES[library] for file in metadata.files(name) or ()]
    return sum(Path(file.locate()).stat().st_size for file in files if Path(file.locate()).is_file()) / 2**20


def main() -> None:
    """Measure with one thread and with two, in separate processes, because JAX fixes its threads when it starts."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("library", choices=sorted(PACKAGES))
    arguments.add_argument("--data", required=True)
    arguments.add_argument("--batch", type=int, nargs="+", default=[256, 1024, 4096])
    arguments.add_argument("--share", type=float, default=1.0, help="of the samples of an epoch")
    arguments.add_argument("--threads", type=int, help="measure in this process")
    given = arguments.parse_args()
    if given.threads:
        print(json.dumps(measure(given.library, given.data, given.threads, given.batch[0], given.share)))
        return
    print(f"{given.library}: {installed(given.library):,.0f} MiB installed")
    for batch in given.batch:
        for threads in (1, 2):
            flags = f"--xla_cpu_multi_thread_eigen={'false' if threads == 1 else 'true'}"
            environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "XLA_FLAGS": flags}
            command = [sys.executable, __file__, given.library, "--data", given.data, "--batch", str(batch)]
            command += ["--threads", str(threads), "--share", str(given.share)]
            output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
            row = json.loads(output)
            print(
                f"batch {batch:5}, {threads} threads: import {row['import']:.1f} s, first epoch {row['first']:.1f} s, "
                f"second {row['second']:.1f} s ({row['processor']:.1f} s of processor time), weights {row['weights']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
