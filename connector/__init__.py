"""What Spark users and the command line touch."""
