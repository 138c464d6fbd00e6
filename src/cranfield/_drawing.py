"""Drawing in a separate process, so that figures are drawn while the rest of a page is made.

vl-convert holds Python's global lock while it draws, so a thread would not help. This file is also the program of
that process: it imports nothing from the package, so it starts in a few milliseconds. The process ends with the one
that started it, however that one ends, because its standard input is then closed. If no process can be started, or it
dies, figures are drawn in the main process.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Literal, TypeVar

T = TypeVar("T")
DrawingTask = Literal["svg", "pdf", "png", "script"]


class DrawingProcess:
    """A process that draws, a thread that waits for it, and a thread that works on finished drawings."""

    def __init__(self, fonts: str):
        self._owner, self._fonts = os.getpid(), fonts
        self._thread, self._beside = ThreadPoolExecutor(1, "drawing"), ThreadPoolExecutor(1, "saving")
        self._process: subprocess.Popen[str] | None = None
        with suppress(OSError, ValueError):
            self._process = self._started()
        atexit.register(self.close)

    def submit(self, task: DrawingTask, source: str, scale: float = 1.0) -> Future[bytes]:
        """Start drawing: a Vega-Lite definition as SVG, SVG as PDF or PNG, or the Vega libraries as a script."""
        return self._thread.submit(self._draw, task, source, scale)

    def beside(self, make: Callable[[], T]) -> Future[T]:
        """Start work that uses drawings, in a thread that may wait for them."""
        return self._beside.submit(make)

    def close(self) -> None:
        """End the process."""
        self._beside.shutdown(wait=False, cancel_futures=True)
        self._thread.shutdown(cancel_futures=True)
        # A forked copy of this process must not wait for a process that is not its child.
        if self._process is not None and self._owner == os.getpid():
            with suppress(OSError):
                self._process.communicate()
        self._process = None

    def _started(self) -> subprocess.Popen[str] | None:
        # In a program frozen into one file, sys.executable is that program and not Python.
        if not sys.executable or getattr(sys, "frozen", False):
            return None
        process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps([self._fonts, sys.path]) + "\n")
        return process

    def _draw(self, task: DrawingTask, source: str, scale: float) -> bytes:
        if self._process is not None and self._process.stdin is not None and self._process.stdout is not None:
            with suppress(OSError, ValueError, TypeError):
                self._process.stdin.write(json.dumps([task, source, scale]) + "\n")
                self._process.stdin.flush()
                return base64.b64decode(json.loads(self._process.stdout.readline()))
        # If the process failed, draw here, where an error gets a proper message.
        return _drawn(task, source, scale, self._fonts)


def _drawn(task: DrawingTask, source: str, scale: float, fonts: str) -> bytes:
    """Draw in this process."""
    import vl_convert as library

    library.register_font_directory(fonts)
    if task == "svg":
        return str(library.vegalite_to_svg(source)).encode()
    if task == "pdf":
        return bytes(library.svg_to_pdf(source))
    if task == "png":
        return bytes(library.svg_to_png(source, scale=scale))
    return str(library.javascript_bundle(source)).encode()


def _serve() -> None:
    """Answer each line of standard input with one line: the drawing in base64, or null if drawing failed."""
    # Ctrl-C is meant for the parent process; this one ends when its input is closed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    fonts, path = json.loads(sys.stdin.readline())
    sys.path[:] = path
    for line in sys.stdin:
        answer: Any = None
        with suppress(Exception):
            task, source, scale = json.loads(line)
            answer = base64.b64encode(_drawn(task, source, scale, fonts)).decode()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
