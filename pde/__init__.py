"""The equation: attention integrals, fluxes, stepping, march and solution; knows no theorem, file or plot."""
