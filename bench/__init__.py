"""Performance claims as ratios: both sides measured in turn in one run, medians quoted."""
