"""Language models as people have them: layers with weights, caches and states, and the parts around them."""
