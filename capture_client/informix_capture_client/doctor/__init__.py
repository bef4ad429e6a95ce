"""What is wrong with a server: facts in, findings out."""
