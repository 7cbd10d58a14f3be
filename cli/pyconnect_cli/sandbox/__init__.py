"""`pyconnect sandbox`: a real Kafka broker and workers on this machine."""
