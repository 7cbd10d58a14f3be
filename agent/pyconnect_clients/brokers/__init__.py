"""Requests to brokers through both client libraries, for the agent, the command line and the jobs.

Design: docs/explanation/design/clients.md. Errors are the libraries'. `failures`
classifies them, and each package translates them into its own errors.
"""
