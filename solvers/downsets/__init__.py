"""The exhaustive search over downsets: limits decided, gaps closed."""
