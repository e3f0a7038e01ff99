// kafkajs as its users use it. Records are lines of JSON: [key, value, headers], base64 but for the names of headers.
//
//   node kafkajs_client.cjs produce SERVERS TOPIC CODEC          writes standard input to partition 0
//   node kafkajs_client.cjs consume SERVERS TOPIC COUNT GROUP    prints COUNT records as a member of GROUP, then commits and leaves
//   node kafkajs_client.cjs member SERVERS TOPIC GROUP           prints `joined [partitions]` and records until SIGTERM
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
const line = ({ key, value, headers }) =>
  JSON.stringify([encoded(key), encoded(value), Object.entries(headers).map(([name, one]) => [name, encoded(one)])]);

async function produce(kafka, topic, codec) {
  const messages = [];
  for await (const text of readline.createInterface({ input: process.stdin })) {
    const [key, value, headers] = JSON.parse(text);
    const named = Object.fromEntries(headers.map(([name, one]) => [name, decoded(one)]));
    messages.push({ partition: 0, key: decoded(key), value: decoded(value), headers: named });
  }
  const producer = kafka.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  await producer.send({ topic, acks: -1, compression: CODECS[codec], messages });
  await producer.disconnect();
}

async function consume(kafka, topic, count, groupId) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 30000 });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  let left = Number(count);
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer
      .run({
        eachMessage: async ({ message }) => {
          if (left > 0) console.log(line(message));
          left -= 1;
          if (left === 0) resolve();
        },
      })
      .catch(reject);
  });
  await consumer.disconnect();
}

async function member(kafka, topic, groupId) {
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 500 });
  process.on("SIGTERM", () => consumer.disconnect().then(() => process.exit(0)));
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) =>
    console.log(`joined ${JSON.stringify(payload.memberAssignment[topic] ?? [])}`),
  );
  await consumer.run({ eachMessage: async ({ message }) => console.log(line(message)) });
}

const [what, servers, ...rest] = process.argv.slice(2);
const kafka = new Kafka({ brokers: servers.split(","), logLevel: logLevel.ERROR, retry: { retries: 20 } });
({ produce, consume, member })[what](kafka, ...rest).catch((error) => {
  console.error(error);
  process.exit(1);
});
