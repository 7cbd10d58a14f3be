"""`pyconnect context` and `pyconnect config`: the settings of this command."""
