"""The networks of RD-JEPA, on torch alone: no module here knows an equation, a coefficient or a dataset.

Array letters, used throughout: B batch, T frames, C components, H and W grid points, S = (H/8)(W/8) patches,
M queries, N forecast horizons, d latent width.
"""
