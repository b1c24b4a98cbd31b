"""Turns PodCliqueSets into PodGangs and pods. Never patches a pod."""
