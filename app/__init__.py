"""tokensphere: the mean-field transformer equation for a density on the sphere."""
