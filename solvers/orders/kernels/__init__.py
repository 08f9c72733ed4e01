"""Compiled loops over topological orders."""
