"""What the indexes of writers keep: which file group a record key belongs to."""
