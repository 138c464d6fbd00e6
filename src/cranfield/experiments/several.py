"""One verdict over the sets of ratings of an experiment, or of several experiments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cranfield._errors import SettingError
from cranfield.across import DatasetComparison, compare_datasets, known_families
from cranfield.comparisons import tested_average

if TYPE_CHECKING:
    from cranfield.experiments.results import Results


def over_datasets(experiments: Sequence[Results], **options: Any) -> DatasetComparison:
    """Return one verdict over the sets of ratings of experiments; the options are those of `compare_datasets`.

    Averages, level and baseline are by default those of the experiments, whose averages must be of one kind.
    """
    places = [(results, data) for results in experiments for data in results.data]
    times = Counter(data for _, data in places)
    names = [data if times[data] == 1 else f"{results.path.name}/{data}" for results, data in places]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise SettingError(f"there are two datasets called {twice[0]!r}; give their folders other names")
    decided = [results.decided(data) for results, data in places]
    averages = {tested_average(decisions.significance, decisions.tested) for decisions in decided}
    if len(averages) > 1:
        raise SettingError("the experiments average users in different ways, so their values cannot be compared")
    baselines = {decisions.comparing.base for decisions in decided}
    usual = {"average": averages.pop(), "alpha": decided[0].alpha} if averages else {}
    if len(baselines) == 1:
        usual["baseline"] = baselines.pop()
    sources = {name: results.line.source(data).source for name, (results, data) in zip(names, places)}
    families = {name: source.family for name, source in sources.items() if source.family is not None}
    options["families"] = {**families, **(options.get("families") or {})}
    scores = {name: results.findings(data).scores for name, (results, data) in zip(names, places)}
    compared = compare_datasets(scores, **{**usual, **options})
    return replace(compared, known=known_families({name: own.dataset or name for name, own in sources.items()}))
