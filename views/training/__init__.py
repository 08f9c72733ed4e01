"""Views of what is trained: plans, sweeps, and simulated pipelines as tables and charts."""
