"""A chain as we use it: values, transactions, verdicts, fees, and the only way to a node. Imports nothing of ours."""
