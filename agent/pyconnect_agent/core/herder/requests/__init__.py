"""Requests of clients: their messages, their queue and their steps. Pure."""
