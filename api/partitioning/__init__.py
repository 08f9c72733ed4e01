"""Searches for plans of one model, for one number of stages or several, and the result that holds several plans."""
