"""What is read of topics: the snapshot taken first, what follows from it alone, the records."""
