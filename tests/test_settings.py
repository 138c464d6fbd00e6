from __future__ import annotations

import os

import pytest

from cranfield import SettingError, _checks, _settings
from cranfield._errors import nearest, suggestion


@pytest.fixture
def group(tmp_path, monkeypatch):
    monkeypatch.setattr(_settings, "_GROUP", tmp_path)
    monkeypatch.setattr(_settings, "_of_machine", lambda: 1000.0)
    monkeypatch.setattr(_settings, "memory_limit", lambda: None)
    return tmp_path


def test_the_least_of_machine_container_and_shell_is_available(group, monkeypatch):
    assert _settings.available_memory() == 1000.0
    (group / "memory.max").write_text("700\n")
    (group / "memory.current").write_text("100\n")
    assert _settings.available_memory() == 600.0
    monkeypatch.setattr(_settings, "memory_limit", lambda: 500)
    assert _settings.available_memory() == 500.0


def test_a_container_without_a_limit_or_beyond_it_is_understood(group):
    (group / "memory.current").write_text("900\n")
    (group / "memory.max").write_text("max\n")
    assert _settings.available_memory() == 1000.0
    (group / "memory.max").write_text("800\n")
    assert _settings.available_memory() == 0.0


def test_where_nothing_is_known_memory_is_infinite_and_none_is_used(monkeypatch, tmp_path):
    def unknown(_):
        raise OSError

    monkeypatch.setattr(os, "sysconf", unknown)
    monkeypatch.setattr(_settings, "Path", lambda _: tmp_path / "none")
    assert _settings._of_machine() == float("inf")
    assert _settings.resident_memory() == 0.0


@pytest.mark.parametrize("text", ["", "much", "0GiB", "3 parsecs", "-1"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(SettingError, match="is not a size"):
        _checks.size(text)


def test_sizes_and_lengths_are_read_as_people_write_them():
    assert [_checks.size(text) for text in ("500MB", "2 GiB", 4096)] == [500_000_000, 2 << 30, 4096]
    assert [_checks.all_or_whole("length", value) for value in (5, 5.0, "all", None)] == [5, 5, "all", "all"]
    with pytest.raises(SettingError, match="is neither 'all' nor a whole number of at least 1"):
        _checks.all_or_whole("length", 0)


def test_the_nearest_name_is_suggested_swapped_letters_first():
    assert nearest("ndgc", ["nDCG", "P", "Recall"]) == "; did you mean 'nDCG'?"
    assert suggestion("ndgc", ["NDCL", "nDCG", "Recall"]) == "; did you mean 'nDCG'?"
    assert suggestion("zzz", ["nDCG", "P", "Recall"]) == ""
    assert nearest("zzz", ["P", "nDCG"]) == "; known: nDCG, P"
