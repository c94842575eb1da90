"""The execution-apis conformance suite (hive's rpc-compat): what a node must answer on a given chain of 54 blocks."""
