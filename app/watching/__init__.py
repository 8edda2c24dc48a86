"""Watch the loop of another program: `steinlab.watch`."""
