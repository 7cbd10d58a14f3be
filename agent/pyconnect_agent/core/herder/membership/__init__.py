"""The membership in the group: rebalances, leadership, draining, session keys. Pure."""
