"""Devices that a model is cut for: rates, memory, links and networks, and the files that describe them."""
