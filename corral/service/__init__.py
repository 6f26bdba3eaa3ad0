"""The operations of the API: authorize, validate, write intents, read views; shared by every API version.

Nothing is imported here: control uses a few of these modules, and importing all would cost it 6 MB.
"""
