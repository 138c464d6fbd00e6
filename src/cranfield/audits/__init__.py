"""Audits: whether the winner remains the same under other decisions."""

from cranfield.audits.answers import Audit
from cranfield.audits.auditing import audit
from cranfield.audits.files import read_audit
from cranfield.audits.grid import Change, Grid, Opened, OptionKind
from cranfield.audits.planning import AuditPlan, plan_audit
from cranfield.audits.terms import Terms

__all__ = [
    "Audit",
    "AuditPlan",
    "Change",
    "Grid",
    "Opened",
    "OptionKind",
    "Terms",
    "audit",
    "plan_audit",
    "read_audit",
]
