"""Last looks: results are derived again from themselves, cheaply, before anybody sees them."""
