"""Files of a directory to a topic, and a topic to files."""

VERSION = "1.0.0"
