"""The command line: parsing and printing only, each verb calls one function."""
