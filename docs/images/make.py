"""Take the screenshots of the docs: the demo's report in Chromium, opened as in the browser tests.

``python docs/images/make.py`` writes ``report.png`` and ``explorer.png`` next to this file, using Playwright.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from cranfield.reports import demo

_HERE = Path(__file__).parent
_SIZE = {"width": 1120, "height": 790}
_SHARP = 1.5
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
_MOST_BYTES = 300_000


def main() -> None:
    """Run the demo and write the screenshots."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("there is no Chromium on this machine; install it, and run this again")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = demo(seed=0).write(folder)
        browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        for name, (theme, picture) in {"report": ("light", _top), "explorer": ("dark", _explorer)}.items():
            page = browser.new_page(viewport=_SIZE, device_scale_factor=_SHARP, color_scheme=theme)
            page.goto(report.as_uri())
            page.evaluate("document.fonts.ready")
            picture(page, _HERE / f"{name}.png")
        browser.close()
    for path in sorted(_HERE.glob("*.png")):
        size = path.stat().st_size
        print(f"{path.name}: {size:,} bytes{'' if size <= _MOST_BYTES else ', which is too large'}")


def _top(page: Page, path: Path) -> None:
    page.screenshot(path=path)


def _explorer(page: Page, path: Path) -> None:
    """Take a screenshot of the explorer after changing a decision, so that systems move."""
    page.evaluate("document.querySelector('#explorer details').open = true")
    page.locator("#explorer [data-dimension='lists'] label", has_text="condensed").locator("input").check()
    page.wait_for_timeout(600)  # until the bars have their new lengths
    page.evaluate("scrollTo(0, 0)")
    box = page.locator("#explorer").bounding_box()
    assert box is not None
    # Include the margins of the page.
    clip = {"x": 0, "y": box["y"], "width": _SIZE["width"], "height": box["height"]}
    page.screenshot(path=path, full_page=True, clip=clip)


if __name__ == "__main__":
    main()
