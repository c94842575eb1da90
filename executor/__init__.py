"""The executor: decides what is sent and when, and writes every decision down before acting on it."""
