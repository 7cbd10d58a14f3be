"""Connect's metrics: their values, and the arithmetic behind them. Layer: core."""
