"""The planner of Piper: pipelines over downsets of layers."""
