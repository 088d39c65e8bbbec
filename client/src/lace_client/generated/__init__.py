"""Generated from the OpenAPI document: make client."""
