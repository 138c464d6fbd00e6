"""Audits: whether the winner remains the same under other decisions."""

from cranfield.audits.answers import Audit
from cranfield.audits.auditing import audit, audit_of
from cranfield.audits.figures import FIGURES
from cranfield.audits.files import read_audit
from cranfield.audits.grid import Change, Grid, Opened, OptionKind
from cranfield.audits.options import OPENABLE
from cranfield.audits.planning import AuditPlan, plan_audit
from cranfield.audits.shares import ranks_of
from cranfield.audits.stage import AUDITED, HOME
from cranfield.audits.tables import audit_tables, pair_tables
from cranfield.audits.terms import Terms
from cranfield.audits.verdict import NOT_A_PROBABILITY
from cranfield.audits.view import View
from cranfield.audits.wording import option_words, share_text

__all__ = [
    "AUDITED",
    "FIGURES",
    "HOME",
    "NOT_A_PROBABILITY",
    "OPENABLE",
    "Audit",
    "AuditPlan",
    "Change",
    "Grid",
    "Opened",
    "OptionKind",
    "Terms",
    "View",
    "audit",
    "audit_of",
    "audit_tables",
    "option_words",
    "pair_tables",
    "plan_audit",
    "ranks_of",
    "read_audit",
    "share_text",
]
