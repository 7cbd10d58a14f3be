"""Requests of clients: their messages, their queue and what each of them does. Pure."""
