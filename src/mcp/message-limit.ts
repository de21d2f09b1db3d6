/**
 * The messages of a client, whole lines of standard input. The SDK closes the session when a line is longer than its buffer:
 * here such a line is left out instead, and reported with the id of its request.
 */
import { Transform } from 'node:stream'

export const MAX_MESSAGE_BYTES = 10 * 1024 * 1024

export interface MessageLimitOptions {
  readonly maxBytes?: number
  /** A line was left out. The id is undefined where it was not found, or where there is none. */
  onTooLong(id: RequestId | undefined): void
}

export type RequestId = string | number

/** Of a line that is left out, this much is kept of its beginning and of its end, to find the id. */
const KEPT_BYTES = 1_024
const LINE_END = 0x0a

export function createMessageLimit({
  maxBytes = MAX_MESSAGE_BYTES,
  onTooLong,
}: MessageLimitOptions): Transform {
  let parts: Buffer[] = []
  let length = 0
  /** The beginning of a line that is too long. */
  let head: Buffer | undefined

  function add(part: Buffer): void {
    parts.push(part)
    length += part.length
    if (length <= maxBytes) return
    const whole = Buffer.concat(parts)
    head ??= Buffer.from(whole.subarray(0, KEPT_BYTES))
    // A copy: a slice would keep all of it in memory.
    const tail = Buffer.from(whole.subarray(-KEPT_BYTES))
    parts = [tail]
    length = maxBytes - KEPT_BYTES
  }

  function takeLine(): Buffer | undefined {
    const line = Buffer.concat(parts)
    const beginning = head
    parts = []
    length = 0
    head = undefined
    if (beginning === undefined) return line
    onTooLong(idIn(beginning.toString('utf8'), line.toString('utf8')))
    return undefined
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      let from = 0
      for (let at = chunk.indexOf(LINE_END); at !== -1; at = chunk.indexOf(LINE_END, from)) {
        add(chunk.subarray(from, at + 1))
        const line = takeLine()
        if (line !== undefined) this.push(line)
        from = at + 1
      }
      if (from < chunk.length) add(chunk.subarray(from))
      done()
    },
  })
}

const ID = String.raw`"id"\s*:\s*(-?\d+|"[^"\\]{0,200}")`
/** The first member, or behind others whose values are plain strings. */
const FIRST = new RegExp(String.raw`^\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*${ID}`)
/** The last member: what ends with it and a brace is the message itself, not an object or a text in it. */
const LAST = new RegExp(String.raw`[{,]\s*${ID}\s*\}\s*$`)

/** The id of a request, of which only the beginning and the end are known. */
export function idIn(beginning: string, end: string): RequestId | undefined {
  const [, id] = FIRST.exec(beginning) ?? LAST.exec(end) ?? []
  return id === undefined ? undefined : JSON.parse(id)
}
