"""Walk over a graph: types of each node in turn, contents where sizes depend on them, and costs."""
