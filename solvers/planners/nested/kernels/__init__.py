"""Compiled loops of nested plans."""
