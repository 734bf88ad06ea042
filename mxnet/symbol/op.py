"""All operators of `mx.sym`, made from the registry."""
