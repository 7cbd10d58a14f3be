"""Lakes that Spark cannot reach by a path: files of object stores, and Iceberg tables."""
