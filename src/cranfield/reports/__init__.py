"""The report: figures, tables, the page, and the demo."""

from cranfield.reports import figures
from cranfield.reports.audit_page import write_audit
from cranfield.reports.decisions import other_decisions
from cranfield.reports.demonstration import Demo, demo
from cranfield.reports.experiment import report_experiment
from cranfield.reports.reporting import report, write_report
from cranfield.reports.section import Section
from cranfield.reports.tables import leaderboard_frame, leaderboard_table

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
    "write_audit",
    "write_report",
]
