"""Audits of layouts of engines, and comparisons of their rules."""
