"""Resource methods, one module per group of endpoints; each has `ROUTES`."""
