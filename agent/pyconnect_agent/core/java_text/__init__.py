"""What Java makes of texts and bytes: regular expressions, JSON, class files. Pure."""
