"""The stage `measure`."""
