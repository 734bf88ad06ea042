"""Speed of MXNext beside torch and the original MXNet."""
