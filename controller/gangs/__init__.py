"""Places, reserves, pins and lifts gangs, and keeps the certificates. Never creates a pod."""
