/** The public interface: what a client does with invalid values. Its names: e2e/library.test.ts. */
import { existsSync, readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { type CreateBody, createClient, type Fetch, RushesError } from '../src/index.js'
import {
  finishedState,
  ONE_PIXEL_PNG,
  rejection,
  responseOf,
  scripted,
  temporaryFolder,
} from './support/index.js'

const BASE = { baseUrl: 'https://api.example.com', apiKey: 'key' }
const BODY: CreateBody = { model: 'acme/still-1', input: { prompt: 'a fox' } }
const CIRCLE: Record<string, unknown> = {}
CIRCLE.again = CIRCLE

type Call = (client: ReturnType<typeof createClient>) => Promise<unknown>
const drained: Call = async (client) => {
  for await (const state of client.states('..')) expect.fail(state.status)
}

it.each<[string, Call]>([
  ['a create without a body', (client) => client.create(undefined as never)],
  ['a model without a provider', (client) => client.create({ ...BODY, model: 'still-1' })],
  ['a number that is none', (client) => client.create({ ...BODY, input: { seed: Number.NaN } })],
  ['a path in place of a URL', (client) => client.create({ ...BODY, input: { image_urls: ['fox.png'] } })],
  ['a path in an object', (client) => client.create({ ...BODY, input: { a: [{ mask: 'row:fox' }] } })],
  ['a circle', (client) => client.create({ ...BODY, input: CIRCLE })],
  ['an id that is another path', (client) => client.get('..')],
  ['no id', (client) => client.wait(undefined as never)],
  ['the same when states are listed', drained],
  ['a limit that is no number', (client) => client.wait('run_1', { timeoutMs: Number.NaN })],
  [
    'an empty folder',
    (client) => client.download(finishedState('run_1', ['https://cdn.test/1']), { folder: '' }),
  ],
  ['an answer that is no run', (client) => client.download({} as never)],
])('a client rejects with a RushesError, before anything is sent, %s', async (_, call) => {
  const { fetch, requests } = scripted({ status: 500 })
  const error = await rejection(call(createClient({ ...BASE, fetch })))
  expect(error).toBeInstanceOf(RushesError)
  expect({ code: error.code, requests }).toEqual({ code: 'usage', requests: [] })
  expect(existsSync('/run_1.png')).toBe(false)
})

it('a client rejects with a RushesError, before anything is sent, says which field has a path, and what to do', async () => {
  const { fetch } = scripted()
  const call = createClient({ ...BASE, fetch }).create({ ...BODY, input: { end_image_url: 'b.png' } })
  expect(await rejection(call)).toMatchObject({
    message:
      'The input has the field "end_image_url", which takes an http(s) or data: URL, not "b.png". Nothing was sent.',
    hint: 'Read the file, and send it as a data: URL.',
  })
})

it.each([undefined, '', 'two\nlines', 'ümlaut'])(
  'a client rejects with a RushesError, before anything is sent, the key %j, when it is made',
  (apiKey) => {
    expect(() => createClient({ ...BASE, apiKey: apiKey as string })).toThrow(
      expect.objectContaining({ name: 'RushesError', code: 'no_api_key' }),
    )
  },
)

it('a client rejects with a RushesError, before anything is sent, takes the line end of a file from a key', async () => {
  const { fetch, requests } = scripted({ status: 201, body: { id: 'run_1' } })
  await createClient({ ...BASE, apiKey: 'key\n', fetch }).create(BODY)
  expect(requests[0]?.headers.authorization).toBe('Bearer key')
})

it('foreign errors become the cause of a RushesError when a callback throws them', async () => {
  const cause = new TypeError('of the callback')
  const client = createClient({ ...BASE, fetch: scripted({ status: 429 }).fetch })
  const onRetry = () => {
    throw cause
  }
  expect(await rejection(client.create(BODY, { onRetry }))).toMatchObject({ code: 'internal', cause })
})

it('foreign errors leave the outcome of a create unknown when fetch throws them', async () => {
  const fetch = () => Promise.reject(new TypeError('fetch failed'))
  const client = createClient({ ...BASE, fetch })
  expect(await rejection(client.create(BODY))).toMatchObject({ code: 'submission_unknown', exitCode: 13 })
})

it('foreign errors pass on the reason of an aborted signal', async () => {
  const stop = AbortSignal.abort(new Error('enough'))
  const client = createClient({ ...BASE, fetch: scripted({ status: 500 }).fetch })
  expect(await rejection(client.get('run_1', stop))).toBe(stop.reason)
})

it('a partly failed download names the complete files', async () => {
  const folder = temporaryFolder()
  const told: string[] = []
  const fetch: Fetch = async ({ url }) =>
    responseOf({ status: url.pathname === '/2' ? 400 : 200, body: ONE_PIXEL_PNG })
  const urls = ['https://cdn.test/1', 'https://cdn.test/2', 'https://cdn.test/3']
  const error = await rejection(
    createClient({ ...BASE, fetch }).download(finishedState('run_1', urls), {
      folder,
      onFile: ({ path }) => told.push(path),
    }),
  )
  expect(error).toMatchObject({ code: 'download_failed', runId: 'run_1' })
  expect(told.sort()).toEqual([`${folder}/run_1-1.png`, `${folder}/run_1-3.png`])
  expect(readdirSync(folder).sort()).toEqual(['run_1-1.png', 'run_1-3.png'])
})
