"""Keys and values as typed columns, by formats that the native half decodes (`broker_native/typed`).

| file | what is there |
|---|---|
| `formats` | the formats, and the options of a query as one value |
| `avro` | Avro schemas as Spark's types |
| `registered` | schemas of a registry, by id and by subject |
| `columns` | the columns that a query asks for, and where each comes from; what crosses to the native half |
| `readers` | what every reader of them shares |
| `writing` | which columns of a frame make its values |
| `arrow` | Spark's types as Arrow's |
| `types` | Spark's types without Spark, from JSON, DDL or Arrow |
"""
