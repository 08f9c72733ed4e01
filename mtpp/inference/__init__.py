"""Partitioning for inference: the graph, the machine, the instance in ticks, partitions and what is proven of them."""
