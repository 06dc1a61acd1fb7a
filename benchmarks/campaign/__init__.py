"""The campaign: kills, damaged files, hostile input, missing resources and load, counted; see `__main__`."""
