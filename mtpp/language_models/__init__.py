"""Language models as sequences of layers, their trees of modules, and layouts of layers on stages and devices."""
