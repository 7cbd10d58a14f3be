"""What the converters with a schema registry share."""
