"""Bodies to answers, and the sockets they come over."""
