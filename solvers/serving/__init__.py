"""Capacity of devices that serve a language model: the memory of ranges of layers, and stages that all fit."""
