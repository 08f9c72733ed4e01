"""One lower bound per module."""
