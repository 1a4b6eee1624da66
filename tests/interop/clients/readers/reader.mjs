// Reads partition 0 of a topic from its beginning with a Node client: reader.mjs CLIENT BOOTSTRAP TOPIC; KCT_MODULES: its node_modules.
// Prints the offset of each record; these clients do not tell their position.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(`${process.env.KCT_MODULES}/`)
const [client, bootstrap, topic] = process.argv.slice(2)
const groupId = `reader-${process.pid}-${Date.now()}`

const readers = {
  kafkajs: async () => {
    const { Kafka, logLevel } = require('kafkajs')
    const consumer = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING }).consumer({ groupId, maxWaitTimeInMs: 500 })
    await consumer.connect()
    await consumer.subscribe({ topic, fromBeginning: true })
    await consumer.run({ autoCommit: false, eachMessage: async ({ message }) => console.log(message.offset) })
  },
  platformatic: async () => {
    const { Consumer, stringDeserializers } = await import(pathToFileURL(require.resolve('@platformatic/kafka')))
    const consumer = new Consumer({ clientId: 'reader', bootstrapBrokers: [bootstrap], groupId, deserializers: stringDeserializers, maxWaitTime: 500 })
    const stream = await consumer.consume({ topics: [topic], mode: 'earliest', autocommit: false })
    stream.on('data', message => console.log(String(message.offset)))
  }
}

await readers[client]()
