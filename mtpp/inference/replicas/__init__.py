"""Stages that stand on several devices, which take turns at their requests."""
