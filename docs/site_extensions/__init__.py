"""Sphinx extensions of the site."""
