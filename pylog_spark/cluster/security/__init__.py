"""Who may log in, who may do what, and how much: SCRAM users, ACLs and client quotas. Pure decisions, and the documents that keep them.

| file | what it owns |
|---|---|
| `model` | users, ACLs and quotas as values, and how many there may be |
| `documents` | where each is stored, and as what |
| `users`, `acls`, `quotas` | what a request changes or shows, by Kafka's rules |
"""
