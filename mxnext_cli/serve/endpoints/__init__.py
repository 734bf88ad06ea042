"""The paths of a server: `service` lists them, `predictions` and `descriptions` answer them."""
