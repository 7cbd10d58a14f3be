"""The Spark session of a run: made or reached, watched, cancelled; what its errors mean."""
