"""Predictive latent pretraining: its dataset, its objective, its loop and its diagnostics; never a test split."""
