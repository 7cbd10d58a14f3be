"""Source offsets and their writers, from Connect's internal topics. Pure."""
