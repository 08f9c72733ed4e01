"""Drawings of the pages about bounds: small graphs, and what the bound proves of them, taken from its own proof.

``python -m docs.drawing``, in the checkout's root, writes every picture anew.
"""
