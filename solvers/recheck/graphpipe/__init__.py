"""Searches behind bounds of plans by ``graphpipe``, run again from the document alone."""
