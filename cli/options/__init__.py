"""Options that commands share, and the objects that they turn into."""
