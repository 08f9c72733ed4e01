"""Compiled loops of Piper's planner."""
