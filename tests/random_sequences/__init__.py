"""Random lives of whole tables against a model: `python -m tests.random_sequences --seeds 20`.

A seed draws a kind of table (`table_kinds`) and the names of steps (`steps`): writes, statements, services, killed
processes, writers that race, Apache Hudi's turns. A `model` of plain dicts says what every query must return after each
step (`checks`). A failure prints how to repeat it, and `minimizer` looks for the steps that it needs.
"""
