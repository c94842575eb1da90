"""A local chain that answers like a real node and whose every fault can be ordered: for tests, demos and rehearsals."""
