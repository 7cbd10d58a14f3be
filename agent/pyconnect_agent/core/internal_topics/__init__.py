"""Records and reducers of the config, offset and status topics. Pure."""
