"""Print the coverage of lines and branches, and the modules below the target. Run it after ``coverage combine``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

LINES, MODULE = 95.0, 85.0


def main() -> None:
    """Print the shares, and the modules that miss the target."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        subprocess.run([sys.executable, "-m", "coverage", "json", "-q", "-o", str(file)], check=True)
        report = json.loads(file.read_text(encoding="utf-8"))
    total = report["totals"]
    lines = 100 * total["covered_lines"] / total["num_statements"]
    branches = 100 * total["covered_branches"] / total["num_branches"]
    print(f"{lines:.1f} % of lines (the bar is {LINES:g} %), {branches:.1f} % of branches")
    summaries = {path: summary["summary"] for path, summary in report["files"].items()}
    shares = {
        path: 100 * summary["covered_lines"] / summary["num_statements"]
        for path, summary in summaries.items()
        if summary["num_statements"]
    }
    low = sorted((share, path) for path, share in shares.items() if share < MODULE)
    print(f"{len(low)} of {len(shares)} modules have fewer than {MODULE:g} % of their lines covered")
    for share, path in low:
        print(f"  {share:5.1f} %  {path}")


if __name__ == "__main__":
    main()
