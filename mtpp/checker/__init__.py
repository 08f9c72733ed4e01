"""The independent verifier: everything that documents claim, re-derived in plain Python integers."""
