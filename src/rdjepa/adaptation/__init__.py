"""Adaptation of a forecaster to a few trajectories, and the adapted forecaster."""
