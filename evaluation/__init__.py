"""LACE: prompts, judges, engines, the gateway, runs and verdicts; imports labeling, never its labels."""
