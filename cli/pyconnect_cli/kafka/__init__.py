"""What REST cannot answer, asked of the brokers."""
