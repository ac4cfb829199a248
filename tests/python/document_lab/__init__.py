"""Commands that the documents name."""
