"""Standard output and standard error: what is said while people wait, and signals."""
