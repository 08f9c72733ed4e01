"""The rules by which engines cut models over devices, as baselines: consecutive ranges of the file's order."""
