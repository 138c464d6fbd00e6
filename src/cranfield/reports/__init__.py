"""The report: figures, tables, the page, and the demo."""

from cranfield._figures import Style, check_libraries, save, themed
from cranfield.reports import figures
from cranfield.reports.audit_page import write_audit
from cranfield.reports.demonstration import SIZES, Demo, demo
from cranfield.reports.html_page import Section, page
from cranfield.reports.markup import Column, Value, downloads, figure, paragraphs, percent, table, text
from cranfield.reports.reporting import other_decisions, report, report_experiment, write_report
from cranfield.reports.sections.bias import TITLE, beside_random, bias_sections
from cranfield.reports.sections.card import card
from cranfield.reports.split_page import write_split_page
from cranfield.reports.tables import leaderboard_frame, leaderboard_table

__all__ = [
    "SIZES",
    "TITLE",
    "Column",
    "Demo",
    "Section",
    "Style",
    "Value",
    "beside_random",
    "bias_sections",
    "card",
    "check_libraries",
    "demo",
    "downloads",
    "figure",
    "figures",
    "leaderboard_frame",
    "leaderboard_table",
    "other_decisions",
    "page",
    "paragraphs",
    "percent",
    "report",
    "report_experiment",
    "save",
    "table",
    "text",
    "themed",
    "write_audit",
    "write_report",
    "write_split_page",
]
