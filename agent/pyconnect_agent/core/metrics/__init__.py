"""Connect's metrics: what is measured, and the arithmetic behind it. Layer: core."""
