"""The paper's tables and claims, run again: `python -m reproduction table2a` from a clone."""
