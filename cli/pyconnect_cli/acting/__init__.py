"""One action on many connectors: selection, batch, waiting, unattended runs."""
