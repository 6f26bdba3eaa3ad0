"""What a caller may do: decide, validate, write intent, read views; used by every version of the API.

Nothing is imported here: control uses a few modules of the service, and loading all of it would cost control 6 MB.
"""
