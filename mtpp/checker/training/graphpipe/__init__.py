"""The independent verifier of version-2 training plans by the planner ``graphpipe``: stage graphs and iterations."""
