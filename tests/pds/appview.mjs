// The part of the AppView that counts: it answers app.bsky.actor.getProfile and app.bsky.feed.getPosts from the records of
// the PDS, with the XRPC server and the lexicons of the PDS, which check each answer. It takes only calls that the PDS has
// signed for it. A request to /away makes it answer 502 until one to /back.
import { createServer as createXrpcServer, UpstreamFailureError, verifyJwt } from '@atproto/xrpc-server'
import { pathToFileURL } from 'node:url'

const viewDid = 'did:web:appview.test'

async function startAppView(pdsUrl, plcUrl) {
  const lexicons = join(process.cwd(), 'node_modules/@atproto/pds/dist/lexicons/index.js')
  const { app } = await import(pathToFileURL(lexicons))

  const ask = async (method, query) => {
    const answer = await fetch(`${pdsUrl}/xrpc/${method}?${new URLSearchParams(query)}`)
    if (!answer.ok) throw new UpstreamFailureError(`${method}: ${answer.status} ${await answer.text()}`)
    return answer.json()
  }
  // All records of a collection, of all accounts, as {uri, cid, value}.
  const records = async (collection) => {
    const { repos } = await ask('com.atproto.sync.listRepos', { limit: 500 })
    const pages = await Promise.all(repos.map((r) =>
      ask('com.atproto.repo.listRecords', { repo: r.did, collection, limit: 100 })))
    return pages.flatMap((p) => p.records)
  }
  const count = async (collection, matches) => (await records(collection)).filter((r) => matches(r.value, r)).length
  const author = (uri) => uri.split('/')[2]
  // What the directory says of an account.
  const account = async (did) => (await fetch(`${plcUrl}/${did}/data`)).json()
  const handle = async (did) => (await account(did)).alsoKnownAs[0].replace('at://', '')

  const signingKey = async (issuer) => (await account(issuer.split('#')[0])).verificationMethods.atproto

  let away = false
  const verify = (method) => async ({ req }) => {
    if (away) throw new UpstreamFailureError('The AppView is away.')
    const jwt = (req.headers.authorization ?? '').replace(/^Bearer /, '')
    const payload = await verifyJwt(jwt, null, method, signingKey)
    if (payload.aud.split('#')[0] !== viewDid) throw new UpstreamFailureError(`a token for ${payload.aud}`)
    return { credentials: payload }
  }
  const server = createXrpcServer([], { validateResponse: true })
  const json = (body) => ({ encoding: 'application/json', body })

  server.add(app.bsky.actor.getProfile, {
    auth: verify('app.bsky.actor.getProfile'),
    handler: async ({ params }) => json({
      did: params.actor,
      handle: await handle(params.actor),
      followersCount: await count('app.bsky.graph.follow', (v) => v.subject === params.actor),
      followsCount: await count('app.bsky.graph.follow', (_, r) => author(r.uri) === params.actor),
      postsCount: await count('app.bsky.feed.post', (_, r) => author(r.uri) === params.actor),
    }),
  })
  server.add(app.bsky.feed.getPosts, {
    auth: verify('app.bsky.feed.getPosts'),
    handler: async ({ params }) => {
      const found = (await records('app.bsky.feed.post')).filter((r) => params.uris.includes(r.uri))
      return json({ posts: await Promise.all(found.map(async (r) => ({
        uri: r.uri, cid: r.cid, record: r.value, indexedAt: new Date().toISOString(),
        author: { did: author(r.uri), handle: await handle(author(r.uri)) },
        likeCount: await count('app.bsky.feed.like', (v) => v.subject.uri === r.uri),
        repostCount: await count('app.bsky.feed.repost', (v) => v.subject.uri === r.uri),
        replyCount: await count('app.bsky.feed.post', (v) => v.reply?.parent.uri === r.uri),
        quoteCount: await count('app.bsky.feed.post', (v) => v.embed?.record?.uri === r.uri),
      }))) })
    },
  })
  const host = await listen()
  host.server.on('request', (req, res) => {
    if (req.url === '/away' || req.url === '/back') {
      away = req.url === '/away'
      return res.end()
    }
    server.router(req, res)
  })
  return `http://127.0.0.1:${host.port}`
}
