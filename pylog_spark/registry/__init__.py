"""Schemas of records: a client of schema registries with Confluent's REST interface."""
