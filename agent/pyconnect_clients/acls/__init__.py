"""The rights of the clients of a Connect cluster in terms of Kafka's ACLs."""
