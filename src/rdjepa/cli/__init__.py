"""The command line: one module for each group of commands, parsing and printing only; heavy imports are inside them."""
