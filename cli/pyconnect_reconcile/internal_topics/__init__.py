"""What Connect's own topics tell of source offsets and who wrote them. Pure."""
