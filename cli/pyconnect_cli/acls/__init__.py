"""ACLs of a Connect cluster: the grants that its principals need, have and lack.

Design: docs/explanation/design/clients.md.
"""
