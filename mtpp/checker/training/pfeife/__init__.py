"""Independent verifier of plans by ``pfeife``: split points and schedules."""
