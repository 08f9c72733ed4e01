"""numba kernels of the searches behind bounds of plans by ``graphpipe``."""
