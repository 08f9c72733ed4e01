"""Headers of files with weights: names, types, shapes and sizes of tensors. No weight is ever read."""
