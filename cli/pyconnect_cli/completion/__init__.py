"""Shell completion: three scripts that call `pyconnect __complete`, and that command."""
