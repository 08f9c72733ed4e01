"""Training plans: models with configurations, devices, plans of one level or several."""
