"""Select, act, record. Rows are the messages between stages; no stage calls another."""
