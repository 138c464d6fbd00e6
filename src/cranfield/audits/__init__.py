"""Audits: whether the winner survives other decisions."""

from cranfield.audits.answers import Audit
from cranfield.audits.files import read_audit
from cranfield.audits.grid import Change, Grid, Kind, Opened
from cranfield.audits.terms import Terms

__all__ = ["Audit", "Change", "Grid", "Kind", "Opened", "Terms", "read_audit"]
