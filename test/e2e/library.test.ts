/** The library as another program imports it. */
import { pathToFileURL } from 'node:url'
import { expect, it } from 'vitest'
import { DIST } from '../support/binary.js'
import { createPlace, filesBelow, type Place, start } from '../support/index.js'

const LIBRARY = new URL('index.js', pathToFileURL(DIST)).href

const script = (place: Place, text: string) =>
  start(place, ['--input-type=module', '-e', text], { command: process.execPath, stdin: 'ignore' }).ended

it.concurrent('importing the library prints nothing and creates no file, handle or listener', async () => {
  const place = createPlace()
  const { code, stdout, stderr } = await script(
    place,
    `const listeners = () => process.eventNames().map((name) => [name, process.listenerCount(name)])
    const globals = () => Object.getOwnPropertyNames(globalThis)
    const before = JSON.stringify([listeners(), globals(), Object.keys(process.env)])
    const library = await import(${JSON.stringify(LIBRARY)})
    const after = JSON.stringify([listeners(), globals(), Object.keys(process.env)])
    console.log(JSON.stringify({ same: before === after, names: Object.keys(library), handles: process.getActiveResourcesInfo() }))`,
  )
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const { same, names, handles } = JSON.parse(stdout)
  expect(same).toBe(true)
  expect(names).toEqual(expect.arrayContaining(['createClient', 'RushesError']))
  expect(handles.filter((name: string) => /Timeout|TCP|Immediate/.test(name))).toEqual([])
  expect([...filesBelow(place.home), ...filesBelow(place.folder)]).toEqual([])
})

it.concurrent('the library retries a 404 only for a run that it has just created', async () => {
  const { code, stdout, stderr } = await script(
    createPlace(),
    `import { createClient } from ${JSON.stringify(LIBRARY)}
    const gone = [404, { error: { code: 'run_not_found' } }]
    const failed = [200, { id: 'a', status: 'failed' }]
    const answers = [[201, { id: 'a' }], gone, failed, failed, gone, failed]
    const looks = []
    const client = createClient({
      baseUrl: 'https://api.example.com',
      apiKey: 'key',
      async fetch({ method, url }) {
        looks.push(method + ' ' + url.pathname.split('/').at(-1))
        const [status, body] = answers.shift() ?? gone
        const bytes = new TextEncoder().encode(JSON.stringify(body))
        return { status, header: () => undefined, body: (async function* () { yield bytes })(), discard() {} }
      },
    })
    const { id } = await client.create({ model: 'acme/still-1', input: {} })
    const { phase } = await client.wait(id, { timeoutMs: 10_000 })
    // The limit of a later wait counts from its call, since more time has passed since the create.
    const again = await client.wait(id, { timeoutMs: 1_500 })
    // A new run is forgiven all the same.
    await client.wait(id, { timeoutMs: 10_000 })
    const error = await client.wait('b', { timeoutMs: 10_000 }).catch((error) => error)
    console.log(JSON.stringify({ phase, again: again.phase, code: error.code, looks }))`,
  )
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toEqual({
    phase: 'failed',
    again: 'failed',
    code: 'run_not_found',
    looks: ['POST runs', 'GET a', 'GET a', 'GET a', 'GET a', 'GET a', 'GET b'],
  })
})
