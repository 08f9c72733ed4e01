"""File formats: one module each. They read and write graphs and plans, and decide nothing."""
