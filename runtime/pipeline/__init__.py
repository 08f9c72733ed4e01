"""Stages run as a pipeline: a process each, tensors in shared memory, bounded queues between them."""
