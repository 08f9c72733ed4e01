"""Pfeife's problem: a model cut at split points along an order, and schedules of passes on devices."""
