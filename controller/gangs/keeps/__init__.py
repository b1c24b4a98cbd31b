"""Room that people have kept by reservations of their own."""
