"""What all studies share: the study and its claims, units of work in a store, and tables and figures."""
