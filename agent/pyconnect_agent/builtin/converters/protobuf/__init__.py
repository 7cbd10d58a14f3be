"""Connect data as Protobuf, with the mapping of Confluent's `ProtobufData`."""
