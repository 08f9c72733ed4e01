"""Branch and bound on the exact model of all stages: HiGHS proposes multipliers, integers prove each case."""
