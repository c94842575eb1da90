"""Faults on command: which calls meet which fault, decided by rules and seeds alone. Carrying them out is the server's."""
