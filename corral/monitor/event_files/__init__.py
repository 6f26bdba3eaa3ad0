"""Read the scalars in the event files that TensorBoard's writers write."""
