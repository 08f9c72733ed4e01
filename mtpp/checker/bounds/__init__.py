"""The checkers of lower bounds of tier exact, one bound a module."""
