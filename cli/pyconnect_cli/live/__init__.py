"""`pyconnect top`: a live view of a cluster in the terminal.

`state` decides, `table` lays out, `actions` knows the verbs: all three are pure. `screens` and
`view` draw with textual, which is an extra and takes half a second to import: nothing else loads
it.
"""
