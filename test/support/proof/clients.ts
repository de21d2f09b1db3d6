/** Clients of a real service. Each request uses a new connection. */
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { until } from '../until.js'

export interface Client {
  readonly url: string
  readonly apiKey: string
}

export interface RunBody {
  readonly id: string
  readonly status: string
  readonly output: { readonly urls: readonly string[] } | null
  readonly error: { readonly code: string; readonly message: string } | null
}

export const RUNS = '/api/v1/runs'
export const IMAGE_OF_A_FOX = { model: 'rushes/preview-image', input: { prompt: 'a fox in snow' } }
export const VIDEO_OF_A_FOX = { model: 'rushes/preview-video', input: { prompt: 'a fox runs' } }

/** Sends a request. Rejects if there is no response. */
export async function ask({ url, apiKey }: Client, path: string, body?: object) {
  const response = await fetch(new URL(path, url), {
    headers: { authorization: `Bearer ${apiKey}`, connection: 'close' },
    signal: AbortSignal.timeout(60_000),
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  })
  const bytes = Buffer.from(await response.arrayBuffer())
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, bytes, body: isJson ? JSON.parse(bytes.toString()) : undefined }
}

/** Polls until the run has ended. Retries while the service restarts, is busy, or its database is locked. */
export const endOf = (client: Client, id: string, limitMs = 180_000): Promise<RunBody> =>
  until(
    `the end of ${id}`,
    async () => {
      const answer = await ask(client, `/api/v1/runs/${id}`).catch(() => undefined)
      if (answer?.status === 404) throw new Error(`${id} was accepted, and is unknown`)
      if (answer?.status === 200 && ['succeeded', 'failed'].includes(answer.body.status)) return answer.body
      await sleep(1_000)
      return undefined
    },
    limitMs,
  )

/** Acts like a normal client: creates a run, polls it, and downloads the image. */
export async function makePicture(client: Client): Promise<void> {
  const created = await ask(client, '/api/v1/runs', IMAGE_OF_A_FOX)
  expect(created.status, created.bytes.toString()).toBe(201)
  const run = await endOf(client, created.body.id)
  expect(run.error).toBeNull()
  const picture = await ask(client, run.output?.urls[0] ?? '')
  expect(picture.bytes.toString('latin1', 1, 4)).toBe('PNG')
}
