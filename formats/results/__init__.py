"""Plans, tables and manifests as documents and CSV."""
