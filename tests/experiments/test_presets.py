"""Presets: the decisions of a paper, to start from."""

from __future__ import annotations

import re

import pytest

from cranfield import SettingError
from cranfield.experiments import new_experiment, read_experiment, run
from cranfield.experiments.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_written_as_a_file_that_states_it_and_runs(name, tmp_path):
    path = new_experiment(tmp_path / "experiment.toml", preset=name)
    assert read_experiment(path) == PRESETS[name].experiment
    text = path.read_text(encoding="utf-8")
    small = text.replace("world(users=1000, items=500, ratings=50000)", "world(users=60, items=40, ratings=900)")
    # Compiling MF would take longer than everything else.
    path.write_text(re.sub("^MF = .*$", 'MF = "puresvd(factors=4)"', small, flags=re.MULTILINE), encoding="utf-8")
    assert run(path).finished


def test_the_starting_configuration_of_canamares_castells_and_moffat():
    stated = PRESETS["canamares2020"].experiment.decisions
    assert stated.split == "random(train=0.5)"
    assert (stated.min_ratings, stated.fill, stated.lists, stated.coverage) == (1, "none", "full", "full")
    assert (stated.metrics, stated.threshold) == (("P@10", "nDCG(gain=binary)@10"), 4.0)
    assert (stated.average, stated.undefined, stated.significance) == ("mean", "zero", "student")


def test_a_preset_that_is_not_there_is_answered_with_those_that_are(tmp_path):
    with pytest.raises(SettingError, match="preset='canamares' is not one of canamares2020; did you mean"):
        new_experiment(tmp_path / "experiment.toml", preset="canamares")
    assert not (tmp_path / "experiment.toml").exists()
