"""Pure decisions of the command line: what a command will do, before it does it."""
