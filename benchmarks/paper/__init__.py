"""The experiment of the Kafka paper (Kreps, Narkhede, Rao, NetDB 2011, section 5), and what its case study says of backlogs, with pylog."""
