"""Bytes that Connect workers exchange through the group coordinator."""
