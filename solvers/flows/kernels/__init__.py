"""Compiled maximum flow and minimum cuts."""
