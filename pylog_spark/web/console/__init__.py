"""The page of a broker: its API under ``/api/`` in JSON, and the files of the page under ``/static/``.

`service` is the way in, `routes` the table of requests; `guard` refuses what other sites' pages send, `sessions` keeps a client of the brokers
for each user, so that the brokers' ACLs decide what is shown and changed. All modules but `history` are loaded by the first request.
"""
