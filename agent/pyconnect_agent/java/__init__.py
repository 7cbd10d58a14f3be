"""Java connectors: the processes they run in, and what is said between them and this one."""
