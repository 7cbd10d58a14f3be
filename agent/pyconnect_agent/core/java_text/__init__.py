"""Texts and bytes as Java treats them: regular expressions, JSON, class files. Pure."""
