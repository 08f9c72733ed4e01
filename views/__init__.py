"""Results as tables, Markdown, CSV, HTML and pictures."""
