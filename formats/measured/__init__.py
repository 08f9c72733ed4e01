"""Measured times: profiles read, and put onto graphs."""
