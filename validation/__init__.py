"""The evidence: hypotheses, projection, Wasserstein distances, exact solutions, phases, particles."""
