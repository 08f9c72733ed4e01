"""Most weight of a convex set of ops, and of labels before, in and after a stage, by a scan with few live tensors."""
