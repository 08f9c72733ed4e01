"""Claims on what devices hold of a language model: the largest context and the most sequences."""
