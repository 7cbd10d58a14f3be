"""Two sides as rows of one shape, and how they are compared."""
