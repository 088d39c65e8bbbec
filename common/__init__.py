"""Code that all apps share; imports no app."""
