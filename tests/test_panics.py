"""Panics of Polars are heard as errors, and not as lines of Rust."""

from __future__ import annotations

import os
import threading

import polars as pl
import pytest

from cranfield._panics import panics_unheard


def _panic():
    os.write(2, b"thread panicked at range.rs\n")
    raise pl.exceptions.PanicException("range end index")


def test_what_rust_writes_of_a_panic_is_dropped(capfd):
    with pytest.raises(pl.exceptions.PanicException), panics_unheard():
        _panic()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"


def test_without_a_panic_what_was_written_comes_out(capfd):
    with panics_unheard():
        os.write(2, b"a warning\n")
        assert capfd.readouterr().err == ""
    assert capfd.readouterr().err == "a warning\n"


def test_another_error_loses_nothing(capfd):
    def fail():
        os.write(2, b"a warning\n")
        raise KeyError

    with pytest.raises(KeyError), panics_unheard():
        fail()
    assert capfd.readouterr().err == "a warning\n"


def test_threads_that_read_at_once_leave_the_standard_error_as_it_was(capfd):
    def read():
        for _ in range(50):
            with panics_unheard():
                pass

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"
