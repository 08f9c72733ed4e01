"""Devices of plans for machines: stages that stand on several of them."""
