"""Parts of tables of certificates: claims of rows, single bounds, and means."""
