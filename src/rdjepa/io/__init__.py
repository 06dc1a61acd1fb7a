"""Files: the only place that writes them whole."""
