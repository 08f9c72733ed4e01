"""GraphPipe: pipelines whose stages form any acyclic graph."""
