"""Audits: whether the winner survives other decisions."""

from cranfield.audits.grid import Change, Grid, Kind, Opened
from cranfield.audits.terms import Terms

__all__ = ["Change", "Grid", "Kind", "Opened", "Terms"]
