"""What holds for every input and in every interleaving."""
