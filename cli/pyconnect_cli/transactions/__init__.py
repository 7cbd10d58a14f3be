"""`pyconnect transactions`: transactions of connectors, hanging ones and their end."""
