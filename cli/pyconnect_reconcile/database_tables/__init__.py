"""Tables of databases, copied at one moment of a run."""
