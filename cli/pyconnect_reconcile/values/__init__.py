"""What of a record is looked at: where it is, in which form, decoded by which schema, as hashes."""
