"""One partitioning algorithm per module; ``mtpp.solvers.registry`` knows them by name.

``partition`` raises Infeasible where it finds no partition within the stage memory: a proof only where it says so.
"""
