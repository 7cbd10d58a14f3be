"""Printing: tables, JSON, YAML, result lines, questions. Data on stdout, all else on stderr."""
