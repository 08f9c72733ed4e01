"""Estimates of sizes and of small tensors that only a run tells, and what is certain of them."""
