"""The verb `audit`: an experiment or ranked lists in, an `Audit` out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield._errors import SettingError
from cranfield.audits.answers import Audit
from cranfield.audits.given import audit_runs
from cranfield.audits.stage import AUDITED
from cranfield.audits.true_values import from_here
from cranfield.experiments import Experiment, Results, Stages, experiment_and_folder, run, silent


def audit(
    experiment: Any,
    out: str | Path | None = None,
    *,
    test: Any = None,
    preset: str | None = None,
    vary: Mapping[str, Any] | None = None,
    budget: int | None = None,
    truth: Mapping[str, float] | str | None = None,
    seed: int | None = None,
    jobs: int | None = None,
    stages: Stages = silent,
    report: Callable[[Results, Path], list[Path]] | None = None,
    allow_code: bool = False,
    **of_lists: Any,
) -> Audit:
    """Audit an experiment, or given ranked lists: compute whether the winner remains the same under other decisions.

    Every combination of the options of all opened decisions is computed; each is a *universe*. Systems are trained once
    for each training set; lists are ranked once for each set of targets, and judged once. All other options reuse these
    lists. Everything is stored in the folder of the experiment, so an interrupted audit continues where it stopped.

    Parameters
    ----------
    experiment
        The starting point, or its file. The table ``[audit]`` opens decisions; without it, the preset is ``usual``. Or
        ranked lists, as for `measure`: only decisions that need no training can be opened on them. The preset is then
        ``measuring``, with full and condensed lists.
    out
        The folder; by default, the name of the file without its extension. An audit of lists is only written if it is
        given.
    test
        The test ratings, if ranked lists are given.
    preset, vary, budget
        These override the table ``[audit]``: the preset, the options of individual decisions, and the maximum number of
        universes to compute (5,000).
    truth
        The true value of every system, if known: by name; in a file with the columns ``system`` and ``value``; or
        ``P@n``, ``Recall@n`` or ``nDCG@n`` for simulated worlds, in which it can be computed (`true_values`).
    seed, jobs, stages, report, allow_code
        As for `cranfield.experiments.run`.
    of_lists
        Further options for ranked lists. ``train``: the training ratings, which determine which test items a system
        could score. ``metric`` and ``threshold``: the starting point, by default P@10 and the threshold of `measure`.
        ``kinds``: as in the table ``[audit]``. ``gaps`` and ``strict``: as for `measure`.

    Returns
    -------
    Audit
        The result, which is also written to the folder ``audit`` inside the folder of the experiment.

    Examples
    --------
    >>> import tempfile
    >>> from cranfield.experiments import Source, System
    >>> tiny = Experiment(
    ...     data=(Source("tiny", simulate="world(users=60, items=40, ratings=900)"),),
    ...     systems=(System("popularity", "popularity"), System("near", "knn(k=5)")),
    ... )
    >>> found = audit(tiny, tempfile.mkdtemp(), vary={"cutoff": [5, 10], "average": ["mean", "weighted"]})
    >>> found.grid
    Grid(2 decisions, 4 cells, 4 universes)
    """
    if test is not None:
        _refuse("ranked lists", {"jobs": jobs, "report": report, "allow_code": allow_code or None})
        audited = audit_runs(
            experiment, test, preset=preset, vary=vary, budget=budget, truth=truth, seed=seed or 0, **of_lists
        )
        if out is not None:
            audited.save(Path(out))
        return audited
    if not isinstance(experiment, Experiment | str | Path):
        raise SettingError("ranked lists are audited with the test ratings; give them as test=...")
    _refuse("an experiment", of_lists)
    experiment, out = experiment_and_folder(experiment, out, seed)
    results = run(
        with_audit(experiment, preset=preset, vary=vary, budget=budget, truth=truth),
        out,
        jobs=jobs,
        stages=stages,
        further=(AUDITED,),
        report=report,
        allow_code=allow_code,
    )
    return audit_of(results)


def _refuse(audited: str, options: Mapping[str, Any]) -> None:
    for name in (name for name, value in options.items() if value is not None):
        raise SettingError(f"{name}=... does nothing in an audit of {audited}; leave it out")


def with_audit(
    experiment: Experiment,
    *,
    preset: str | None = None,
    vary: Mapping[str, Any] | None = None,
    budget: int | None = None,
    truth: Mapping[str, float] | str | None = None,
) -> Experiment:
    """Return an experiment with a table ``[audit]``, overridden by what is given here."""
    table = dict(experiment.audit or {})
    if vary is not None:
        table["vary"] = {
            name: list(options) if isinstance(options, tuple) else options for name, options in vary.items()
        }
    stated = {"preset": preset, "budget": budget, "truth": from_here(truth)}
    table |= {key: value for key, value in stated.items() if value is not None}
    return replace(experiment, audit=table)


def audit_of(results: Results) -> Audit:
    """Return the audit of an experiment that was run with one."""
    return results.line.read(AUDITED, results.line.units("experiment")[0])
