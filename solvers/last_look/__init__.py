"""Last looks: results are derived again from themselves, cheaply, before anybody sees them.

Each raises InconsistentResult where the result is another, and InconsistentBound for a bound above it, which are
bugs.
"""
