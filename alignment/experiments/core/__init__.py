"""Experiments: sums over units, differences between variants, and what they show."""
