"""Machine code of kernels in files, found by what the kernels do instead of where their source lies."""
