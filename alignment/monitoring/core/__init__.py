"""Quality in production: rates over all chats, estimated from judged samples and human labels."""
