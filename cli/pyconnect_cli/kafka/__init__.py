"""Requests to the brokers, for facts that REST does not report."""
