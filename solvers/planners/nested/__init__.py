"""Plans for devices within devices (Piper, appendix E)."""
