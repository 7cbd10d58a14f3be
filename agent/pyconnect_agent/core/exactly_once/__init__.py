"""Transaction boundaries and transactional ids of source connectors (KIP-618). Pure."""
