"""Modules on devices: maps whose fullest device, as a share of its limit, is as empty as can be."""
