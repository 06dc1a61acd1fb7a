"""Trajectories: simulated or read, stored, split, standardized and cut into windows."""
