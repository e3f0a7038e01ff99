"""The Python face of the native client, for programs without Spark: `Admin`, `Consumer`, `Producer`.

All of them speak Kafka's protocol, so they work with Apache Kafka too. Settings have Kafka's names.

>>> from pylog_spark.client import Consumer, Producer
>>> with Producer("127.0.0.1:9092", "events") as producer:  # doctest: +SKIP
...     producer.send(b"hello", key=b"k")
>>> for record in Consumer("127.0.0.1:9092", "events", start="earliest", follow=False):  # doctest: +SKIP
...     print(record.offset, record.value)
"""

from pylog_spark.client.admin import Admin
from pylog_spark.client.consumer import Consumer, Record
from pylog_spark.client.errors import LogError
from pylog_spark.client.producer import Producer

__all__ = ["Admin", "Consumer", "LogError", "Producer", "Record"]
