"""Functions of PySpark that `activate` replaces."""
