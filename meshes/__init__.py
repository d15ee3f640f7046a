"""Geometry: cells, faces, labels, quadrature and transfer between levels; knows no equation."""
