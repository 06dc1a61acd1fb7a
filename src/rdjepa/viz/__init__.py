"""Figures of fields and of training runs, drawn without changing matplotlib's backend."""
