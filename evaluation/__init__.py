"""LACE: prompts, judges, engines, the gateway to models, runs and verdicts; imports labeling, never its labels."""
