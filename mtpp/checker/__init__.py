"""The independent verifier: everything that documents claim, re-derived in plain Python integers.

Its modules share nothing with the rest of the program; :mod:`mtpp.checker.plan` is where it begins.
"""
