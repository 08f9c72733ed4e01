"""Stages that several GPUs of a device share, at a degree of tensor parallelism of their own."""
