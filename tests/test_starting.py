"""A command under a memory limit ends in one line, even where Rust or the system ends it."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cranfield import _starting

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process so")

SHORT = b"cranfield: not enough memory; ask for less, or run one system at a time\n"
RUST = "memory allocation of 8388608 bytes failed\\nstack backtrace:\\n   0: 0x7f\\n"


def _limited(bytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes, bytes))


def _command(tmp_path, after_guard, **options):
    """Start a program that is called as the command line is, is watched, and then does something."""
    script = tmp_path / "cranfield"
    script.write_text(
        # Load the module without the package, which takes a second to import.
        "import importlib.util, os, signal, sys, time\n"
        f"spec = importlib.util.spec_from_file_location('cranfield._starting', {_starting.__file__!r})\n"
        "spec.loader.exec_module(_starting := importlib.util.module_from_spec(spec))\n"
        "_starting.watch('not enough memory; ask for less, or run one system at a time')\n"
        f"{after_guard}\n"
    )
    return subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, stdout=subprocess.PIPE, **options)


@pytest.mark.parametrize(
    ("after_guard", "code", "errors"),
    [
        (f"os.write(2, b'{RUST}'); os.abort()", 2, SHORT),
        (f"os.write(2, b'a note\\n{RUST}'); os.kill(os.getpid(), signal.SIGSEGV)", 2, b"a note\n" + SHORT),
        ("raise MemoryError", 2, SHORT),
        ("os.write(2, b'<jemalloc>: arena\\ncranfield: no\\n'); sys.exit(2)", 2, b"cranfield: no\n"),
        ("os.write(2, b'Fatal is a film\\n')", 0, b"Fatal is a film\n"),
        ("sys.exit(130)", 130, b""),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, b""),
    ],
)  # fmt: skip
def test_the_parent_ends_as_the_child_does_with_one_line_where_memory_ran_out(tmp_path, after_guard, code, errors):
    process = _command(tmp_path, after_guard)
    _, written = process.communicate(timeout=60)
    assert (process.returncode, written) == (code, errors)


def test_an_error_of_the_program_keeps_its_traceback(tmp_path):
    process = _command(tmp_path, "raise KeyError('a fault of the program')")
    _, written = process.communicate(timeout=60)
    assert process.returncode == 1
    assert written.startswith(b"Traceback (most recent call last)")
    assert written.endswith(b"KeyError: 'a fault of the program'\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_parent_reaches_the_child(tmp_path, number):
    process = _command(
        tmp_path, "print('here', flush=True)\ntry: time.sleep(60)\nexcept KeyboardInterrupt: sys.exit(130)"
    )
    assert process.stdout.readline() == b"here\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGTERM)


def test_the_child_does_not_outlive_a_parent_that_is_killed(tmp_path):
    process = _command(tmp_path, "print(os.getpid(), flush=True)\ntime.sleep(60)")
    child = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=60)
    for _ in range(200):
        if not _is_running(child):
            return
        time.sleep(0.05)
    pytest.fail("the child is still there")


def _is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_limit_that_does_not_hold_the_libraries_is_refused_at_once():
    done = subprocess.run(
        [sys.executable, "-m", "cranfield", "--version"], capture_output=True, text=True, preexec_fn=_limited(600 << 20)
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "limits a command to 0.6 GiB of address space" in done.stderr


def test_a_command_works_under_a_limit_that_suffices(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n" + "".join(f"{u},{i},{1 + u * i % 5}\n" for u in range(9) for i in range(9)))
    described = [sys.executable, "-m", "cranfield", "data", "describe", str(path)]
    limited = subprocess.run(
        described, capture_output=True, preexec_fn=_limited(2 * _starting.least_memory()), check=True
    )
    assert limited.stdout == subprocess.run(described, capture_output=True, check=True).stdout
    assert limited.stderr == b""


def test_nothing_is_watched_without_a_limit(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert _starting.memory_limit() is None
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (5 if kind == resource.RLIMIT_DATA else 7, 9))
    assert _starting.memory_limit() == 5


def test_the_loader_says_in_its_own_words_that_memory_ran_out():
    assert _starting.is_short_of_memory(ImportError("libblas.so: failed to map segment from shared object"))
    assert not _starting.is_short_of_memory(ImportError("no module named libblas"))
