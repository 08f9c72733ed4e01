"""Everything that searches for partitions or proves bounds on them."""
