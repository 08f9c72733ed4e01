"""Local search over assignments: annealing, polishing, portfolio, multilevel."""
