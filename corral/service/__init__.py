"""What a caller may do: decide, validate, write intent and read views, for every version of the API alike."""
