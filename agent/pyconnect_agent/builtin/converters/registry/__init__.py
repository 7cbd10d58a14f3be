"""The common part of the converters with a schema registry."""
