"""Results read back from their documents: what one says must not contradict itself, and is a claim until verified."""
