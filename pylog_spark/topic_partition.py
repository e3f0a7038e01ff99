"""How a partition is named everywhere in Python: its topic's name and its number."""

TopicPartition = tuple[str, int]
