"""Errors of forecasts in physical units, from single windows to means over runs."""
