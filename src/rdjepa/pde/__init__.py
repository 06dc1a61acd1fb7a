"""Numerics for two-component reaction-diffusion equations; no module here depends on a particular equation."""
