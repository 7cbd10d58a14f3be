"""`pyconnect transactions`: list connectors' transactions, find and end those that hang."""
