"""Reports: an HTML page per result, with charts and the graph, that needs no other file and no network."""
