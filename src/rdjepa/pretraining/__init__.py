"""Predictive latent pretraining: what it reads, its objective, its loop and its diagnostics; never a test split."""
