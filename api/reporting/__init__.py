"""Reports on each kind of result: what is verified, read and simulated for a page, which the views make of it."""
