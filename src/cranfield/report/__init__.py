"""The report: figures, the page, and the demo."""

from cranfield.report import figures
from cranfield.report.decisions import other_decisions
from cranfield.report.demo import Demo, demo
from cranfield.report.report import report, write_report
from cranfield.report.section import Section

__all__ = ["Demo", "Section", "demo", "figures", "other_decisions", "report", "write_report"]
