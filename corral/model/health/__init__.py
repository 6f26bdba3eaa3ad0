"""The health of nodes: signs of trouble, their scores, and the states that lead out of service and back."""
