import { expect, test } from 'vitest'
import type { HttpResponse } from '../../../src/host/http.js'
import { createUpstream } from '../../../src/service/engines/upstream/index.js'
import { createManualClock } from '../../support/clock.js'

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

test('a request gives up after ten minutes of 503, with the words of the server', async () => {
  const clock = createManualClock()
  let sent = 0
  const fetch = async (): Promise<HttpResponse> => {
    sent++
    const body = bytesOf(JSON.stringify({ error: { message: 'Loading model' } }))
    return { status: 503, header: () => undefined, body, discard: () => {} }
  }
  const upstream = createUpstream({ url: new URL('http://127.0.0.1/v1'), parts: { clock, fetch } })
  const request = { method: 'POST', path: 'images' } as const
  await expect(clock.runUntil(upstream.value(request, new AbortController().signal))).rejects.toThrow(
    "The model's server was not ready within 10 minutes. The model's server answered 503: Loading model",
  )
  expect(clock.monotonic()).toBeGreaterThan(580_000)
  expect(clock.monotonic()).toBeLessThanOrEqual(600_000)
  expect(sent).toBeGreaterThan(40)
})
