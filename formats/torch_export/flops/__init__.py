"""Cost rules of ATen operators, by family: the training ones of torch.export and the core ones after decomposition."""
