"""What is done with the rooms below: the paper's lists and counts, and the benchmark's data."""
