from __future__ import annotations


def plan_wide(*a):
    raise NotImplementedError
