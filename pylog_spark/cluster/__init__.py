"""What the cluster is made of and how it may change: pure values and decisions; `store` keeps them."""
