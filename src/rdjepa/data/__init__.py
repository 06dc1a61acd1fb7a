"""Trajectories: simulated or read, stored, split, standardised and cut into windows."""
