"""Planners of training pipelines: stages with their degrees of parallelism, and what each layer runs as."""
