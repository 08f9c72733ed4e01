"""Pictures of training plans and simulations: stages with flows between them, schedules and memory over time."""
