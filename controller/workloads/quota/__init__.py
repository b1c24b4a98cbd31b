"""Gangs whose pods a ResourceQuota refuses take turns."""
