"""The only room that touches machines: one small protocol, and the engines that speak it."""
