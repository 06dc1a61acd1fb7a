"""RD-JEPA: predictive latent pretraining for few-trajectory transfer across reaction-diffusion equations."""

__version__ = "0.1.0"
