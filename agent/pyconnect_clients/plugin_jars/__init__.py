"""The jars of Java plugins and their links to Kafka, read without Java."""
