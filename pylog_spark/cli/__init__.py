"""The command ``pylog``: one file for each verb, loaded only when it is called."""
