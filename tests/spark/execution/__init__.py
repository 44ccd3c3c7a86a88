"""How work reaches executors."""
