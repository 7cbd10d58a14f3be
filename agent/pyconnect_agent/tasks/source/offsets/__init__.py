"""Where the processes of a source connector read and write offsets."""
