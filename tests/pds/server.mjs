// Runs a directory (PLC, in memory) and a Bluesky PDS in one process, on loopback ports that the system chooses.
// Argument: the data folder. Prints {"url", "appView"} once it answers. The code of appview.mjs stands before this. Ends when its standard input ends, so it never outlives its parent.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { PDS } from '@atproto/pds'
import plcServer from '@did-plc/server'

process.stdin.resume().on('close', () => process.exit(0))

const data = process.argv[1]
const { PlcServer, Database } = plcServer

// The port is taken before the app exists, because the PDS writes its own address into the accounts it makes.
async function listen() {
  const server = createServer({ keepAliveTimeout: 90_000 })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { server, port: server.address().port }
}

const directory = await listen()
directory.server.on('request', PlcServer.create({ db: Database.mock() }).app)

const host = await listen()
const plcUrl = `http://127.0.0.1:${directory.port}`
const hostUrl = `http://127.0.0.1:${host.port}`
const appView = await startAppView(hostUrl, plcUrl)
const blobs = join(data, 'blobs')
const blobsHalfDone = join(data, 'blobs-tmp')
mkdirSync(blobs, { recursive: true })
mkdirSync(blobsHalfDone, { recursive: true })

const pds = await PDS.fromEnv({
  port: host.port,
  hostname: 'localhost',
  devMode: true,
  serviceHandleDomains: ['.test'],
  inviteRequired: false,
  didPlcUrl: plcUrl,
  bskyAppViewUrl: appView,
  bskyAppViewDid: viewDid,
  dataDirectory: data,
  blobstoreDiskLocation: blobs,
  blobstoreDiskTmpLocation: blobsHalfDone,
  jwtSecret: randomBytes(32).toString('hex'),
  dpopSecret: randomBytes(32).toString('hex'),
  adminPassword: randomBytes(32).toString('hex'),
  plcRotationKeyK256PrivateKeyHex: randomBytes(32).toString('hex'),
})
await pds.ctx.sequencer.start()
host.server.on('request', pds.app)

console.log(JSON.stringify({ url: hostUrl, appView }))
