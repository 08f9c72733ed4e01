"""Exhaustive searches behind enumerated claims, run again from the documents alone.

Inside, TooLarge tells that a search takes too much memory or too many steps, or that sums do not fit 64 bits.
"""
