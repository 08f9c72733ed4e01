"""Use cases, one a file: typed values in, results out; nothing here knows of a terminal.

:mod:`mtpp` offers their functions under short names. The command line parses, calls them and renders what they return.
"""
