"""Parts of the cost of a stage, and its working memory, as kernels take them."""
