"""The stage `compare`."""
