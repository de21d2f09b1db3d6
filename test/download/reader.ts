/**
 * A connection that breaks takes with it what the reader's side has received and not looked at. So a host that breaks off
 * waits for the reader, who says by `telling` how far it is in the answer that bears the number of a turn.
 */
import type { Fetch } from '../../src/host/http.js'

export const TURN = 'x-turn'
let turns = 0
const waiting = new Map<string, (bytes: number) => void>()

export const nextTurn = (): string => String(++turns)

export const readOf = (id: string, bytes: number): Promise<void> =>
  new Promise((resolve) => {
    waiting.set(id, (read) => {
      if (read >= bytes) resolve()
    })
  })

export const telling =
  (fetch: Fetch): Fetch =>
  async (request) => {
    const response = await fetch(request)
    const tell = (bytes: number) => waiting.get(response.header(TURN) ?? '')?.(bytes)
    async function* body() {
      let read = 0
      for await (const chunk of response.body) {
        read += chunk.byteLength
        tell(read)
        yield chunk
      }
    }
    const discard = () => {
      response.discard()
      // A reader that discards an answer reads no further: a host that waits for it would hold the connection.
      tell(Number.POSITIVE_INFINITY)
    }
    return { ...response, body: body(), discard }
  }
