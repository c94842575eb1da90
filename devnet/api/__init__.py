"""One module a family of JSON-RPC methods, one function a method."""
