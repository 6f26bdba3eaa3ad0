"""The engine protocol and the engines that run tasks on machines."""
