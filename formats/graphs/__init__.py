"""Graph files: one format a module, named in the registry."""
