"""Words, options and values of the command line, as tables and functions."""
