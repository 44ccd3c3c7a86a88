"""Scripts of Spark 4 (``BEGIN … END``), parsed without an engine.

Takes the tokens of a script (`script_parser.parse_script`) and returns its statements, queries and conditions as texts,
and the tree of blocks, loops and handlers around them (`script_nodes`). `script_conditions` has the rules by which a
handler is selected, `script_labels` those of names with labels.
"""
