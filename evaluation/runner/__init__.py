"""What a worker does with a run: take units, ask the engines, save verdicts."""
