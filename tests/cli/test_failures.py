"""What goes wrong around a command is one line too: devices that are full, Ctrl-C, memory, names that command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cranfield as cf

FULL = Path("/dev/full")
TEST = "user,item,rating\n" + "".join(f"u{u},i{i},{1 + (u * i) % 5}\n" for u in range(8) for i in range(0, 6, 2))
RUN = "user,item,score\n" + "".join(f"u{u},i{i},{i + u % 2}\n" for u in range(8) for i in range(6))
NAME = "a\x1b[31m\x9b1mb\u202e[red]"

needs_full = pytest.mark.skipif(not FULL.is_char_device(), reason="this system has no /dev/full")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Stand in a folder with a test set and a run, whose names are plain, and again with names that are not."""
    for name in ("", NAME):
        (tmp_path / f"{name}test.csv").write_text(TEST)
        (tmp_path / f"{name}run.csv").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _command(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "cranfield", *arguments], stderr=subprocess.PIPE, text=True, timeout=120, **options
    )


@needs_full
@pytest.mark.parametrize("arguments", [["data", "list"], pytest.param(["--help"], marks=pytest.mark.slow)])
def test_output_to_a_full_device_is_one_line(arguments):
    with FULL.open("w") as full:
        done = _command(*arguments, stdout=full)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("cranfield: the output cannot be read or written (No space left on device)")


@needs_full
@pytest.mark.parametrize("format", ["table", "csv"])
def test_a_full_device_as_file_is_one_line_and_stays_a_device(cranfield, format):
    code, out, err = cranfield("evaluate", "--test", "test.csv", "run.csv", "--format", format, "--out", FULL)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "/dev/full cannot be written (No space left on device)" in err
    assert FULL.is_char_device()


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="this system has no /dev/stdout")
def test_a_result_goes_to_the_standard_output_as_to_a_file(files, cranfield):
    to_file = ["evaluate", "--test", "test.csv", "run.csv", "--out"]
    cranfield(*to_file, "made.txt")
    assert _command(*to_file, "/dev/stdout", stdout=subprocess.PIPE).stdout == (files / "made.txt").read_text()


def _started(tmp_path, way, polars):
    """Start the command line in a Python whose Polars is a module of ours."""
    (tmp_path / "false" / "polars").mkdir(parents=True)
    (tmp_path / "false" / "polars" / "__init__.py").write_text(polars)
    source = str(Path(cf.__file__).parents[1])
    script = tmp_path / "cranfield"
    script.write_text("import sys\nfrom cranfield.cli import main\nsys.exit(main())\n")
    start = ["-m", "cranfield"] if way == "module" else [str(script)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "false"), source])}
    return subprocess.run(
        [sys.executable, *start, "--version"], capture_output=True, text=True, env=environment, timeout=120
    )


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself Ctrl-C there")
@pytest.mark.parametrize("way", ["module", "script"])
def test_ctrl_c_while_the_package_is_imported_is_one_line(tmp_path, way):
    done = _started(tmp_path, way, "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "cranfield: stopped\n")


@pytest.mark.parametrize("error", ["MemoryError", "ImportError('x.so: failed to map segment from shared object')"])
@pytest.mark.parametrize("way", ["module", "script"])
def test_memory_that_runs_out_while_the_package_is_imported_is_one_line(tmp_path, way, error):
    done = _started(tmp_path, way, f"raise {error}\n")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("cranfield: not enough memory")


def test_an_error_in_an_import_that_is_not_of_memory_keeps_its_traceback(tmp_path):
    done = _started(tmp_path, "module", "raise ImportError('something else')\n")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_importing_the_package_elsewhere_leaves_ctrl_c_alone():
    code = "import signal, cranfield; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\n"


class _Panic(BaseException):
    """As Polars raises its own."""


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 8.00 GiB"),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        ImportError("x.so: failed to map segment from shared object"),
        _Panic("capacity overflow"),
    ],
    ids=repr,
)
def test_memory_that_runs_out_in_a_command_is_one_line(cranfield, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("cranfield.cli._measuring.Loaded.measure", fail)
    code, out, err = cranfield("evaluate", "--test", "test.csv", "run.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("cranfield: not enough memory")


@pytest.mark.parametrize("error", [RuntimeError("a fault of ours"), _Panic("a fault of theirs")], ids=repr)
def test_a_fault_of_the_program_is_not_hidden(cranfield, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("cranfield.cli._measuring.Loaded.measure", fail)
    with pytest.raises(type(error), match="a fault of"):
        cranfield("evaluate", "--test", "test.csv", "run.csv")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("evaluate", "--test", f"{NAME}test.csv", f"{NAME}run.csv"), 0),
        (("evaluate", "--test", f"{NAME}test.csv", f"{NAME}run.csv", "--format", "latex"), 0),
        (("evaluate", "--test", f"{NAME}nowhere.csv", "run.csv"), 2),
        (("evaluate", "--test", "test.csv", "run.csv", "-m", NAME), 2),
        (("evaluate", "--test", "test.csv", "run.csv", f"--{NAME}"), 2),
        (("evaluate", "--test", "test.csv", "run.csv", "--out", "test.csv/" + NAME), 2),
        (("compare", "--test", f"{NAME}test.csv", "run.csv", f"{NAME}run.csv", "-m", "P@3"), 0),
        (("data", "describe", f"{NAME}test.csv"), 0),
        (("data", "describe", "test.csv", "--read", f"user={NAME}"), 2),
        (("data", "filter", f"{NAME}test.csv", "--filter", "min_ratings(user=1)", "--out", f"{NAME}.csv"), None),
        (("data", "simulate", "--out", f"{NAME}.csv", "world(users=20, items=20, ratings=150)"), 0),
        (("split", f"{NAME}test.csv", "--out", NAME), 0),
        (("recommend", "--train", f"{NAME}test.csv", "-s", "popularity", "--out", NAME), 0),
        (("new", f"{NAME}.toml"), 0),
        (("run", f"{NAME}.toml"), 2),
        (("show", NAME), 2),
        ((NAME,), 2),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_name_does_not_command_the_terminal(cranfield, arguments, code):
    found = cranfield(*arguments)
    assert code in (None, found.code)
    assert all(letter.isprintable() or letter in "\n\t" for letter in found.out + found.err)


def test_data_do_not_command_the_terminal_but_reach_a_pipe_whole(cranfield, monkeypatch, files):
    (files / "odd.csv").write_text(TEST.replace("u1,", "\x1b[31mu1,"))
    asked = ("data", "describe", "odd.csv", "--format", "csv")
    values = ("evaluate", "--test", "odd.csv", f"{NAME}run.csv", "--format", "csv")
    piped = cranfield(*values).out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for arguments in (asked, values):
        assert all(letter.isprintable() or letter in "\n\t" for letter in cranfield(*arguments).out)
    monkeypatch.undo()
    monkeypatch.chdir(files)
    assert cranfield(*values).out == piped


def test_the_progress_bar_shows_a_name_as_it_is(monkeypatch, capsys):
    from cranfield import _terminal

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(_terminal, "_PATIENCE", -1.0)
    with _terminal.progress("Reading \x1b]0;owned\x07[red]mine[/]", total=2) as bar:
        bar.advance()
    shown = capsys.readouterr().err
    assert "mine[/]" in shown
    assert "]0;owned" in shown
    assert "\x1b]0;" not in shown
    assert "\x07" not in shown
