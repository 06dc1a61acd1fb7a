"""Pretraining, adaptation, their objectives and their files; nothing here opens a test split."""
