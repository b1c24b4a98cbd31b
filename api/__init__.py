"""What the words mean: names, quantities, and the shapes of objects. Pure."""
