"""Adaptation of a forecaster to a few trajectories, and what comes out of it."""
