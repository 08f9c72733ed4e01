"""Language models as people have them: layouts of their layers as engines read them."""
