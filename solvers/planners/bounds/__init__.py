"""Lower bounds on training plans from single layers."""
