"""`pyconnect top`: a live view of a cluster in the terminal.

`state` holds state and events, `table` the layout, `keys` the verbs: these are pure. `screens`
and `view` draw with textual, which is an extra and takes half a second to import: no other module
loads it.
"""
