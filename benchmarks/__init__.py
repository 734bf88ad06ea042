"""Speed of MXNext compared with torch and the original MXNet."""
