"""Chains of equal layers on devices whose stages cost what their number of ops says: prices, and labels within them."""
