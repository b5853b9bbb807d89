"""One figure a module: finished numbers in, a `Figure` out. Pure; each is imported by itself."""
