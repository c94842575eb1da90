"""The protocol as a small pure transition system, explored exhaustively: docs/model.md."""
