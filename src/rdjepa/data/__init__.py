"""Trajectories: simulation, reading, storage, splits, standardization and windows."""
