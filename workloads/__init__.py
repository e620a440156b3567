"""Small real robot stacks that are measured: examples and test beds at once."""
