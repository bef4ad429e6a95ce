"""The conversation with the CDC functions, and a thread that reads ahead of whoever takes the bytes."""
