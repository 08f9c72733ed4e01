"""Topological orders and their optimal cuts: slicing, evolution of orders, linear arrangement."""
