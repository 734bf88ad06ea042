"""Files of parameters and states, and the reader of pickles that runs no code."""
