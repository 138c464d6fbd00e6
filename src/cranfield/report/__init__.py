"""The report: figures, tables, the page, and the demo."""

from cranfield.report import figures
from cranfield.report.decisions import other_decisions
from cranfield.report.demo import Demo, demo
from cranfield.report.experiment import report_experiment
from cranfield.report.report import report, write_report
from cranfield.report.section import Section
from cranfield.report.tables import leaderboard_frame, leaderboard_table

__all__ = [
    "Demo",
    "Section",
    "demo",
    "figures",
    "leaderboard_frame",
    "leaderboard_table",
    "other_decisions",
    "report",
    "report_experiment",
    "write_report",
]
