"""The benchmark's page: which runs it shows, and what it says about them."""
