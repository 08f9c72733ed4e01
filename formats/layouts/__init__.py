"""Layouts of engines: which layers run where, as each of them says it and by its own rule; one engine a module."""
