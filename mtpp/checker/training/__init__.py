"""The verifier of training plans."""
