"""Apache's predicates, under the names of their Java classes."""
