"""Plans whose latency counts: the least, the least bottleneck within one, and all that no other plan beats in both."""
