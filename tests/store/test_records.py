from __future__ import annotations

import os
import platform

from cranfield.store import records as module


def test_the_machine_has_a_processor_threads_memory_and_a_system():
    processor, threads, *rest = module.machine.__wrapped__().split(", ")
    assert processor
    assert threads == f"{os.cpu_count()} threads"
    assert rest[-1] == f"{platform.system()} {platform.release()}"


def test_what_is_not_known_of_a_machine_is_left_out(monkeypatch):
    def unknown(_):
        raise ValueError

    monkeypatch.setattr(module, "_from_table", lambda *_: None)
    monkeypatch.setattr(os, "sysconf", unknown)
    words = module.machine.__wrapped__()
    assert (platform.processor() or platform.machine()) in words
    assert "memory" not in words


def test_a_table_that_does_not_exist_has_no_value(tmp_path):
    (tmp_path / "table").write_text("cores\t: 2\nmodel name\t: One: Two\n")
    assert module._from_table(str(tmp_path / "table"), "model name") == "One: Two"
    assert module._from_table(str(tmp_path / "table"), "speed") is None
    assert module._from_table(str(tmp_path / "none"), "model name") is None
