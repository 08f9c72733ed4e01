"""The independent verifier: everything that documents claim, re-derived in plain Python integers.

Its modules share errors and rules of documents with the rest of the program, and nothing else. Reading begins at
:mod:`mtpp.checker.plan`.
"""
