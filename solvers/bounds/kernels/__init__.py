"""Compiled loops of lower bounds."""
