"""Values of records: their place, form, schema and hashes."""
