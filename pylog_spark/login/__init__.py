"""Tokens for a login by OAUTHBEARER, for the native client, which asks `token` at each login.

| file | what it does |
|---|---|
| `errors` | why there is no token |
| `tokens` | which source a client's settings name; tokens that are still good are used again, one thread asks for all |
| `endpoint` | the URL of a server of tokens: what may stand in it, what of it is shown |
| `oidc` | a server of tokens, asked for client credentials by HTTPS |
| `local` | a token from a file, from a Python function, or made here and signed by nobody |

Nothing here starts a thread, and nothing but `endpoint` is imported before a client logs in: Spark's Python workers fork. No error, log
line or ``repr`` has a token or a secret in it.
"""
