"""Connect data as JSON with JSON Schemas, with the mapping of Confluent's `JsonSchemaData`."""
