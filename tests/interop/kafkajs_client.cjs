// kafkajs as its users use it. Records are [key, value, headers], base64 but for the names of headers.
//
//   node kafkajs_client.cjs serve     a request per line of standard input, an answer per line of standard output, all JSON:
//     {"produce": [SERVERS, TOPIC, CODEC, RECORDS, GIVEN]}   writes them to partition 0; true
//     {"consume": [SERVERS, TOPIC, COUNT, GROUP, GIVEN]}     COUNT records, read as a member of GROUP, which commits and leaves
//     {"refusal": [SERVERS, GIVEN]}                          the error of a client that may not write, tried once; null when it may
//   GIVEN are settings `ssl` and `sasl`, or nothing; a `token` in `sasl` is what the provider of OAUTHBEARER gives.
const readline = require("node:readline");
const kafkajs = require("kafkajs");
const { Kafka, CompressionTypes, CompressionCodecs, logLevel } = kafkajs;

CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
};

const encoded = (bytes) => (bytes === null ? null : Buffer.from(bytes).toString("base64"));
const decoded = (text) => (text === null ? null : Buffer.from(text, "base64"));
const listed = ({ key, value, headers }) => [
  encoded(key),
  encoded(value),
  Object.entries(headers).map(([name, one]) => [name, encoded(one)]),
];

function clientOf(servers, { ssl, sasl }, retries, level = logLevel.ERROR) {
  const login = sasl?.token ? { ...sasl, oauthBearerProvider: async () => ({ value: sasl.token }) } : sasl;
  return new Kafka({ brokers: servers.split(","), ssl, sasl: login, logLevel: level, retry: { retries } });
}

async function produce(servers, topic, codec, records, given) {
  const messages = records.map(([key, value, headers]) => {
    const named = Object.fromEntries(headers.map(([name, one]) => [name, decoded(one)]));
    return { partition: 0, key: decoded(key), value: decoded(value), headers: named };
  });
  const producer = clientOf(servers, given, 20).producer({ allowAutoTopicCreation: false });
  await producer.connect();
  await producer.send({ topic, acks: -1, compression: CODECS[codec], messages });
  await producer.disconnect();
  return true;
}

async function consume(servers, topic, count, groupId, given) {
  const consumer = clientOf(servers, given, 20).consumer({ groupId, sessionTimeout: 30000 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const records = [];
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer
      .run({
        eachMessage: async ({ message }) => {
          records.push(listed(message));
          if (records.length === count) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
  return records.slice(0, count);
}

async function refusal(servers, given) {
  const producer = clientOf(servers, given, 0, logLevel.NOTHING).producer();
  try {
    await producer.connect();
    await producer.send({ topic: "none", messages: [{ value: "v" }] });
    return null;
  } catch (error) {
    return `${error.name} ${error.cause?.name} ${error.message}`;
  } finally {
    await producer.disconnect();
  }
}

async function serve() {
  for await (const text of readline.createInterface({ input: process.stdin })) {
    const [[what, words]] = Object.entries(JSON.parse(text));
    console.log(JSON.stringify(await { produce, consume, refusal }[what](...words)));
  }
}

serve().catch((error) => {
  console.error(error);
  process.exit(1);
});
