"""One module per aggregate: SQL and nothing else. Functions take the caller's transaction and never open one."""
