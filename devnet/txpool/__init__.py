"""What may enter the pool, in which order it leaves, and the words of each client."""
