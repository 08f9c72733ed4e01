"""Stage memory and working memory as kernels take them."""
