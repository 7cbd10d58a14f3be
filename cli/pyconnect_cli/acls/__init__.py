"""ACLs of a Connect cluster: what its principals need, have and lack.."""
