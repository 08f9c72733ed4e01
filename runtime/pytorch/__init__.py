"""Exported PyTorch programs loaded, cut into stages and run; the only importer of PyTorch but for the exporter."""
