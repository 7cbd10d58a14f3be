"""Agents and Java workers as processes, and their REST interfaces."""
