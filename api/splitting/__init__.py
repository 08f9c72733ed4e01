"""Splits of models: their terms, and the files of each kind of model."""
