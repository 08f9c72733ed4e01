"""Verification of each kind of result: models are found and read, and searches run again, around the verifier."""
