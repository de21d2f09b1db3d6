/**
 * Clients for a proof with several nodes. Each creates runs one after another, follows them and downloads their
 * outputs.
 */
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { History } from './history.js'

export interface ClientOptions {
  /** Base URLs of the available nodes. */
  readonly nodes: readonly string[]
  readonly key: { readonly name: string; readonly apiKey: string }
  /** Whether the client polls without a pause, so that its key reaches the rate limit. */
  readonly isHasty: boolean
  readonly history: History
  /** Stops creating runs. Existing runs are followed to their end. */
  readonly stop: AbortSignal
  /** After this time, runs are no longer followed: the checker checks unfinished ones. */
  readonly endAtMs: number
}

const CREATE_PAUSE_MS = 300
const POLL_PAUSE_MS = 700
const RETRY_PAUSE_MS = 400

const RUNS = '/api/v1/runs'

interface RunBody {
  readonly status: string
  readonly output: { readonly urls: readonly string[] } | null
}

export async function createAndFollow(options: ClientOptions): Promise<void> {
  const { history, key, stop } = options
  while (!stop.aborted) {
    const prompt = `p-${randomBytes(12).toString('hex')}`
    const sentMs = performance.now()
    const answer = await askSome(options, RUNS, { model: 'rushes/preview-image', input: { prompt } })
    const status = answer?.status ?? 0
    const id: string | undefined = status === 201 ? answer?.body.id : undefined
    const received = { sentMs, receivedMs: performance.now(), key: key.name, status }
    history.add({ is: 'create', prompt, ...received, ...(id !== undefined && { id }) })
    if (id === undefined) await sleep(RETRY_PAUSE_MS)
    else await follow(options, id)
    if (!options.isHasty) await sleep(CREATE_PAUSE_MS)
  }
}

async function follow(options: ClientOptions, id: string): Promise<void> {
  const { history, key } = options
  while (performance.now() < options.endAtMs) {
    const sentMs = performance.now()
    const answer = await askSome(options, `${RUNS}/${id}`)
    const status = answer?.status ?? 0
    const run: RunBody | undefined = status === 200 ? answer?.body : undefined
    const received = { sentMs, receivedMs: performance.now(), key: key.name, status }
    history.add({ is: 'poll', id, ...received, ...(run && { runStatus: run.status }) })
    if (run?.status === 'failed' || status === 404) return
    if (run?.status === 'succeeded') return await download(options, id, run)
    await sleep(options.isHasty ? 50 : POLL_PAUSE_MS)
  }
}

/** Downloads from any node: the address in the run may belong to a node that has stopped. */
async function download(options: ClientOptions, id: string, { output }: RunBody): Promise<void> {
  for (const url of output?.urls ?? [])
    while (performance.now() < options.endAtMs) {
      const answer = await askSome(options, new URL(url).pathname)
      if (answer?.status === 200) {
        const sha256 = createHash('sha256').update(answer.bytes).digest('hex')
        options.history.add({ is: 'output', id, sha256 })
        break
      }
      await sleep(RETRY_PAUSE_MS)
    }
}

/** Sends a request on a new connection to a random node. Resolves with undefined if there is no response. */
async function askSome({ nodes, key }: ClientOptions, path: string, body?: object) {
  const url = nodes[Math.floor(Math.random() * nodes.length)] ?? ''
  try {
    const response = await fetch(new URL(path, url), {
      headers: { authorization: `Bearer ${key.apiKey}`, connection: 'close' },
      signal: AbortSignal.timeout(60_000),
      ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
    })
    const bytes = Buffer.from(await response.arrayBuffer())
    const isJson = response.headers.get('content-type')?.startsWith('application/json')
    return { status: response.status, bytes, body: isJson ? JSON.parse(bytes.toString()) : undefined }
  } catch {
    return undefined
  }
}
