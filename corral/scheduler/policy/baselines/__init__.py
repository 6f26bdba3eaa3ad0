"""Orders, a place and an allot part that better ones are compared with; each can be chosen on a server like any other."""
