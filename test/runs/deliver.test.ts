/** Links that expire while the outputs of a run are downloaded. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createDownloader } from '../../src/download/index.js'
import { RushesError } from '../../src/errors.js'
import type { Fetch } from '../../src/host/http.js'
import { deliver } from '../../src/runs/deliver.js'
import type { RunsSession } from '../../src/runs/run.js'
import {
  createManualClock,
  finishedState,
  ONE_PIXEL_PNG,
  responseOf,
  temporaryFolder,
} from '../support/index.js'

const OUTPUTS = 16

/**
 * A host that takes a second for each file. `firstMs`, `freshMs`: how long the links of the run, and fresh ones, are
 * valid. `failing`: status requests that fail.
 */
async function delivered(firstMs: number, freshMs = firstMs, failing: readonly number[] = []) {
  const clock = createManualClock()
  const folder = temporaryFolder()
  const urlsFor = (validMs: number) =>
    Array.from(
      { length: OUTPUTS },
      (_, at) => `https://cdn.example/${at}.png?until=${clock.monotonic() + validMs}`,
    )
  let asked = 0
  const fetch: Fetch = async ({ url, signal }) => {
    if (clock.monotonic() > Number(url.searchParams.get('until'))) return responseOf({ status: 403 })
    await clock.sleep(1_000, signal)
    return responseOf({ status: 200, body: ONE_PIXEL_PNG })
  }
  const run = finishedState('run_1', urlsFor(firstMs))
  const client = {
    async get() {
      if (failing.includes(++asked)) throw new RushesError('network', 'away')
      return { ...run, urls: urlsFor(freshMs) }
    },
  }
  const never = new AbortController().signal
  const session = { client, clock, interrupts: { first: never, second: never }, journal: undefined }
  const { files, error } = await clock.runUntil(
    deliver({ ...session, address: 'https://a.example' } as unknown as RunsSession, run, {
      downloader: createDownloader({ fetch, clock }),
      run: { kind: 'image' },
      row: undefined,
      target: { kind: 'template', template: join(folder, '{index}.{ext}') },
      hint: 'Download again.',
      namesFor: async () => undefined,
    }),
  )
  return { files, error, asked }
}

it('outputs whose links are valid for half a second are all downloaded, with fresh links each time that the links have expired', async () => {
  const { files, error, asked } = await delivered(500)
  expect([files.length, error]).toEqual([OUTPUTS, undefined])
  // Four are downloaded at a time, and one request renews the links of those that expired together.
  expect(asked).toBe(3)
})

it('outputs whose links are valid for half a second lose only the download whose status request failed', async () => {
  const { files, error } = await delivered(500, 500, [1])
  expect([files.length, error?.code]).toEqual([OUTPUTS - 1, 'download_failed'])
})

it('outputs whose first links have expired need one status request where the fresh ones are valid for long', async () => {
  const { files, asked } = await delivered(-1, 60_000)
  expect([files.length, asked]).toEqual([OUTPUTS, 1])
})
