"""Coding agents: what an MCP client with an author's token reads and proposes."""
