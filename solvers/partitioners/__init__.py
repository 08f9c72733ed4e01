"""One partitioning algorithm per module; ``mtpp.solvers.registry`` knows them by name."""
