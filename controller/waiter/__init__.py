"""The init waiter: runs inside a pod, before its containers, until those it waits for are up."""
