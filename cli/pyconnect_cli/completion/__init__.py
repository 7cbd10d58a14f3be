"""Shell completion: static files from the tree of commands, names asked of the cluster."""
