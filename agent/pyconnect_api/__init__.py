"""What the author of a connector imports."""
