"""Figures as functions of arrays; each returns Axes and touches no global state."""
