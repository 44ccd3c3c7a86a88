"""Each side reads what the other one wrote."""
