"""Apache's single message transformations, under the names of their Java classes."""
