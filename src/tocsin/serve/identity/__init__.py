"""Who is asking: credentials, roles, and the limits on what one client may send."""
