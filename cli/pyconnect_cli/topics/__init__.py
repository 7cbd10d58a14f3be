"""`pyconnect topics`: records of topics."""
