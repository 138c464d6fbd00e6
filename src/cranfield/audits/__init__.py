"""Audits: whether the winner remains the same under other decisions."""

from cranfield.audits.auditing import AUDITED, HOME, AuditPlan, audit, audit_of, plan_audit
from cranfield.audits.contributions import UserContributions
from cranfield.audits.figures import FIGURES
from cranfield.audits.files import read_audit
from cranfield.audits.grid import Grid, OptionKind, VariedDecision
from cranfield.audits.options import VARIABLE_DECISIONS
from cranfield.audits.pair import PairView, ranks_of
from cranfield.audits.result import Audit
from cranfield.audits.tables import audit_tables, pair_tables
from cranfield.audits.words import option_label, option_words

__all__ = [
    "AUDITED",
    "FIGURES",
    "HOME",
    "VARIABLE_DECISIONS",
    "Audit",
    "AuditPlan",
    "Grid",
    "OptionKind",
    "PairView",
    "UserContributions",
    "VariedDecision",
    "audit",
    "audit_of",
    "audit_tables",
    "option_label",
    "option_words",
    "pair_tables",
    "plan_audit",
    "ranks_of",
    "read_audit",
]
