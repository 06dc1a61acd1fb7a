"""Numerics for two-component reaction-diffusion equations; nothing here knows a particular equation."""
