"""Smart large objects and the functions on them; TEXT and BYTE."""
