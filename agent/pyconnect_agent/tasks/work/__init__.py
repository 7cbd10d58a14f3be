"""The work of source and sink tasks, in Python or Java, put together from its parts."""
