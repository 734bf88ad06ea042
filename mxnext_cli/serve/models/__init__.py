"""The models of a server: their settings, their versions, and the threads that run them."""
