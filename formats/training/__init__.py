"""Models to be trained, in every format that they are read in."""
