"""Connect's REST interface, Apache's and that of our agents: exchanges and clients."""
