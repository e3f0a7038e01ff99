"""Topics of one cluster kept in another: what `pylog mirror` does.

The native half copies (`pylog_spark._native.Mirror`); here is decided what, into which topics, and what is said about it.

| file | what it does |
|---|---|
| `topics` | which topics, with which settings (pure) |
| `copying` | keeps them in the target while it runs |
| `groups` | keeps the offsets of consumer groups |
| `notices` | what is said to the user |
| `lag` | how far behind they are, asked from both clusters |
| `promotion` | makes a copy a topic as any other |
"""
