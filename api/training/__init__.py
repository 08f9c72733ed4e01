"""Training tasks: parameters checked, the model read, the planning problem made."""
