"""The experiments of the papers: the 1-D wave with its bands, NUTS reference, recovery point and widths."""
