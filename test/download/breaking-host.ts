/** A host of outputs that breaks off, forgets, lies and changes its mind, one turn a request. */
import { once as onceOf } from 'node:events'
import type { IncomingHttpHeaders, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import { PNG, serve, sha256 } from './download-setup.js'
import { nextTurn, readOf, TURN } from './reader.js'

const made = (bytes: number, turn: number) =>
  Buffer.concat([PNG, Buffer.from(Array.from({ length: bytes }, (_, at) => at % turn))])

export const WHOLE = made(300_000, 251)
export const OTHER = made(310_000, 241)
export const etagOf = (bytes: Uint8Array) => `"${sha256(bytes)}"`

/** What a host does with one request. */
export interface Turn {
  /** Ends the connection after so many bytes of the answer's body; undefined: answers whole. */
  readonly breakAfter?: number | undefined
  /** Sends so many bytes of the answer's body, and then nothing. */
  readonly stopAfter?: number | undefined
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

export interface Host {
  readonly url: string
  readonly asked: readonly IncomingHttpHeaders[]
  /** The `Range` of each request. */
  ranges(): readonly (string | undefined)[]
}

/** The last turn is for all further requests. */
export async function host(...turns: readonly Turn[]): Promise<Host> {
  const asked: IncomingHttpHeaders[] = []
  const url = await serve(({ headers }, response) => {
    const turn = turns[Math.min(asked.length, turns.length - 1)] ?? {}
    asked.push(headers)
    answer(response, headers, turn)
  })
  return { url, asked, ranges: () => asked.map(({ range }) => range) }
}

function answer(response: ServerResponse, asked: IncomingHttpHeaders, turn: Turn): void {
  const { breakAfter, stopAfter, file = WHOLE, ranges = 'honest', etag = etagOf(file), status } = turn
  if (status !== undefined) return void response.writeHead(status).end()
  const validator = etag === '' ? {} : { etag }
  const id = nextTurn()
  if (turn.encodes) {
    response.writeHead(200, { ...validator, 'content-encoding': 'gzip', [TURN]: id })
    send(response, gzipSync(file, { level: 0 }), breakAfter, id)
    return
  }
  const start = /^bytes=(\d+)-$/.exec(asked.range ?? '')?.[1]
  const isSame = etag !== '' && !etag.startsWith('W/') && asked['if-range'] === etag
  const heeds = ranges !== 'none' && start !== undefined && (ranges === 'blind' || isSame)
  const from = heeds ? Number(start) : 0
  if (from >= file.length)
    return void response.writeHead(416, { ...validator, 'content-range': `bytes */${file.length}` }).end()
  const told = ranges === 'wrong' ? from + 1 : from
  response.writeHead(heeds ? 206 : 200, {
    ...validator,
    ...(turn.isChunked !== true && { 'content-length': file.length - from }),
    ...(heeds && { 'content-range': `bytes ${told}-${file.length - 1}/${file.length}` }),
    [TURN]: id,
  })
  if (stopAfter !== undefined) return void response.write(file.subarray(from, from + stopAfter))
  send(response, file.subarray(from), breakAfter, id)
}

function send(response: ServerResponse, body: Buffer, breakAfter: number | undefined, id: string): void {
  if (breakAfter === undefined) return void response.end(body)
  if (breakAfter === 0) return void response.destroy()
  response.write(body.subarray(0, breakAfter))
  const read = readOf(id, Math.min(breakAfter, body.length))
  void Promise.race([read, onceOf(response, 'close')]).then(() => response.destroy())
}
