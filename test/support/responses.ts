/** Responses without a network. */
import { HttpFailure, type HttpResponse } from '../../src/host/http.js'

export interface Scripted {
  readonly status: number
  /** Objects travel as JSON. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The connection ends after the body's bytes, or the body fails with this error. */
  readonly cut?: boolean | Error
}

const bytesOf = (body: unknown): Uint8Array => {
  if (body === undefined) return new Uint8Array()
  if (body instanceof Uint8Array) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

export function responseOf({ status, body, headers = {}, cut = false }: Scripted): HttpResponse {
  const lower = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  return {
    status,
    header: (name) => lower.get(name.toLowerCase()),
    body: (async function* () {
      const bytes = bytesOf(body)
      if (bytes.byteLength > 0) yield bytes
      if (cut instanceof Error) throw cut
      if (cut) throw new HttpFailure('the body was cut', { sent: true, code: 'ECONNRESET' })
    })(),
    discard() {},
  }
}
