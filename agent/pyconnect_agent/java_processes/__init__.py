"""Java connectors: their processes, and the messages between them and this process."""
