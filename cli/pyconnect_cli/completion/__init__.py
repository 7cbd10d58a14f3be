"""Shell completion: three scripts that ask `pyconnect __complete`, and its answers."""
