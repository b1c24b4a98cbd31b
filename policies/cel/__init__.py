"""Rules that owners write themselves: as much of CEL as can be checked and bounded beforehand."""
