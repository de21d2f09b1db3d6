/** A host of outputs that breaks off, forgets, lies and changes its mind, one turn a request. */
import { gzipSync } from 'node:zlib'
import { type Fetch, HttpFailure, type HttpRequest } from '../../src/host/http.js'
import { responseOf, type Scripted } from '../support/index.js'
import { PNG, sha256 } from './download-setup.js'

const made = (bytes: number, turn: number) =>
  Buffer.concat([PNG, Buffer.from(Array.from({ length: bytes }, (_, at) => at % turn))])

export const WHOLE = made(300_000, 251)
export const OTHER = made(310_000, 241)

/** What a host does with one request. */
export interface Turn {
  /** Ends the connection after so many bytes of the answer's body; undefined: answers whole. */
  readonly breakAfter?: number | undefined
  readonly file?: Buffer
  /** `none` sends the file; `blind` sends the rest of whatever there is; `wrong` sends the rest of another place. */
  readonly ranges?: 'none' | 'honest' | 'blind' | 'wrong'
  /** `''`: none. */
  readonly etag?: string | undefined
  readonly status?: number | undefined
  readonly encodes?: boolean
  /** Declares no length. */
  readonly isChunked?: boolean
}

/** The last turn is for all further requests. `ranges`: the `Range` of each request. */
export function host(...turns: readonly Turn[]) {
  const requests: HttpRequest[] = []
  const fetch: Fetch = async (request) => {
    const turn = turns[Math.min(requests.length, turns.length - 1)] ?? {}
    requests.push(request)
    if (turn.breakAfter === 0) throw broken()
    const { body, ...head } = answerTo(request.headers, turn)
    return { ...responseOf(head), body: inPieces(body, turn.breakAfter) }
  }
  return { fetch, ranges: () => requests.map(({ headers }) => headers.range) }
}

const broken = () => new HttpFailure('the connection was reset', { sent: true })

async function* inPieces(body: Buffer = Buffer.alloc(0), breakAfter = Number.POSITIVE_INFINITY) {
  const end = Math.min(body.length, breakAfter)
  for (let at = 0; at < end; at += 65_536) yield body.subarray(at, Math.min(at + 65_536, end))
  if (breakAfter < Number.POSITIVE_INFINITY) throw broken()
}

function answerTo(asked: HttpRequest['headers'], turn: Turn): Scripted & { readonly body?: Buffer } {
  const { file = WHOLE, ranges = 'honest', etag = `"${sha256(file)}"`, status } = turn
  if (status !== undefined) return { status }
  const validator = etag === '' ? {} : { etag }
  if (turn.encodes) {
    const headers = { ...validator, 'content-encoding': 'gzip' }
    return { status: 200, headers, body: gzipSync(file, { level: 0 }) }
  }
  const start = /^bytes=(\d+)-$/.exec(asked.range ?? '')?.[1]
  const isSame = etag !== '' && !etag.startsWith('W/') && asked['if-range'] === etag
  const heeds = ranges !== 'none' && start !== undefined && (ranges === 'blind' || isSame)
  const from = heeds ? Number(start) : 0
  if (from >= file.length)
    return { status: 416, headers: { ...validator, 'content-range': `bytes */${file.length}` } }
  const told = ranges === 'wrong' ? from + 1 : from
  const headers = {
    ...validator,
    ...(turn.isChunked !== true && { 'content-length': String(file.length - from) }),
    ...(heeds && { 'content-range': `bytes ${told}-${file.length - 1}/${file.length}` }),
  }
  return { status: heeds ? 206 : 200, headers, body: file.subarray(from) }
}
