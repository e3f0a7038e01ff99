"""What a broker's process serves by HTTP: the schema registry's server stands on this, and the broker's own pages."""
