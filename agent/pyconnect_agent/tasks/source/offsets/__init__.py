"""The stores of a source connector's offsets, as its processes use them."""
