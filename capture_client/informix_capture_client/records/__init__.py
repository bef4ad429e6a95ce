"""From bytes to CDC records, without a byte copied that nobody needs."""
