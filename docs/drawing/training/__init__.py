"""Drawings of plans for training: layers in a line, paths of schedules, and the example that they share."""
