"""Records that a global index moves to another partition."""
