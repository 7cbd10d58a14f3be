"""Connect data as Avro, with the mapping of Confluent's `AvroData`."""
