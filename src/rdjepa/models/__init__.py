"""The networks of RD-JEPA, on torch alone: no module here knows an equation, a coefficient or a dataset.

Array letters, used throughout: B batch, T frames, C components, H and W grid points, S patches (of 8 x 8
points in the paper), M queries, N forecast horizons, d latent width.
"""
