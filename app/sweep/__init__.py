"""Many runs: a configuration over lists of values, on all processors or a cluster, collected into one data set."""
