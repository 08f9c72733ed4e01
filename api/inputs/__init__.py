"""Inputs of use cases: models, plans, assignments and files, in every form that callers have them in."""
