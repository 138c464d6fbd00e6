"""Draw the figure of the README: ``python docs/images/movielens.py [RATINGS]``.

It audits two systems on MovieLens 1M (`examples/movielens.toml`), which takes a few minutes. RATINGS is a file with the
data; without it, the data are downloaded.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import cranfield as cf
from cranfield.reports import figures

_HERE = Path(__file__).parent
_EXPERIMENT = _HERE.parents[1] / "examples" / "movielens.toml"


def main(ratings: str | None = None, out: str | None = None) -> None:
    """Write the figure, and print the verdict of the audit."""
    text = _EXPERIMENT.read_text(encoding="utf-8")
    if ratings is not None:
        text = text.replace('dataset = "ml-1m"', f'file = "{Path(ratings).resolve()}"')
    with tempfile.TemporaryDirectory() as folder:
        home = Path(out or folder)
        file = home / "movielens.toml"
        home.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        audit = cf.audit(file, out=home / "audited")
        print("\n".join(audit.verdict))
        figures.save(audit.plot("map"), _HERE / "movielens.svg")


if __name__ == "__main__":
    main(*sys.argv[1:])
