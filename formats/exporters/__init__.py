"""Plans as other programs take them: one module per program, named in :mod:`mtpp.formats.exporters.registry`."""
