"""The tables and paragraphs for papers are compiled by pdflatex, in the fonts that it has by itself (OT1)."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from cranfield.experiments import Decisions, Experiment, run
from cranfield.experiments.experiment import Source, System

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("pdflatex") is None, reason="pdflatex is missing: apt-get install texlive-latex-base"
    ),
]

PAGE = r"""\documentclass[twocolumn]{article}
\IfFileExists{booktabs.sty}{\usepackage{booktabs}}{\let\toprule\hline\let\midrule\hline\let\bottomrule\hline}
\begin{document}
%s
\end{document}
"""
NAMES = {"a_b (k=5, +)": "popularity", "kNN (ours)": "knn(k=5)", "α, β": "average", "naïve_": "random"}


@pytest.mark.parametrize("baseline", ["none", "kNN (ours)"])
def test_every_table_and_paragraph_of_an_experiment_compiles(tmp_path, baseline):
    metrics = ["nDCG@5", "P@5", "Recall@5", "AP@5", "RR@5", "HitRate@5", "EPC@5", "nDCG(gain=exp)@5"]
    experiment = Experiment(
        data=(Source("Größe_1", simulate="world(users=60, items=40, ratings=1200)"),),
        systems=tuple(System(name, spelling) for name, spelling in NAMES.items()),
        decisions=Decisions(metrics=metrics, baseline=baseline, segment=["activity"]),
    )
    results = run(experiment, tmp_path / "out")
    files = sorted((results.path / "tables").glob("*.tex"))
    assert len(files) == 4
    texts = [path.read_text(encoding="utf-8") for path in (*files, results.path / "card.tex")]
    assert all(text.count(r"\begin{table") == text.count(r"\label{") for text in texts)
    widths = [line for text in texts for line in text.splitlines() if line.startswith(r"\begin{tabular}")]
    assert max(line.count("r", len(r"\begin{tabular}")) for line in widths) <= 6
    (tmp_path / "page.tex").write_text(PAGE % "\n\n".join(texts), encoding="utf-8")
    made = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stdout[-2000:]
    log = (tmp_path / "page.log").read_text(encoding="latin-1")
    assert "Missing character" not in log
    too_wide = [float(width) for width in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", log)]
    assert max(too_wide, default=0) < 60, too_wide  # nothing runs far over its column
