/** Responses about another run than the one that was asked for, and one id for several creates. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Fetch } from '../../src/host/http.js'
import { createFamily } from '../support/family.js'
import {
  createCliService,
  createHome,
  ONE_PIXEL_PNG,
  outputOf,
  responseOf,
  SET,
  scripted,
  temporaryFolder,
} from '../support/index.js'

const PICTURE = (name: string) => Buffer.concat([ONE_PIXEL_PNG, Buffer.from(name)])

/**
 * A service whose creates get these ids, and whose status requests are answered for these runs, one after another; the
 * last one repeats. Each run has one output, which holds its id.
 */
function createOddService(ids: readonly string[], answersFor: readonly string[]) {
  const seen = { creates: 0, looks: 0, outputs: [] as string[] }
  const at = (list: readonly string[], index: number) => list[Math.min(index, list.length - 1)] ?? ''
  const { fetch } = scripted(({ method, url }) => {
    if (method === 'POST') return { status: 201, body: { id: at(ids, seen.creates++) } }
    if (url.pathname.startsWith('/out/')) {
      seen.outputs.push(url.pathname)
      return { status: 200, body: PICTURE(url.pathname), headers: { 'content-type': 'image/png' } }
    }
    const id = answersFor.length === 0 ? url.pathname.replace(/^.*\//, '') : at(answersFor, seen.looks++)
    const output = { urls: [`${SET.RUSHES_BASE_URL}/out/${id}`] }
    return { status: 200, body: { id, status: 'succeeded', output } }
  })
  return { fetch, seen }
}

const RUN = 'run image "a fox"'

it('a run that the service accepted and then does not know is an error that says that it may be paid for', async () => {
  const { run } = await createCliService()
  const { code, stderr } = await run(RUN, { faults: ['status:404:run_not_found'] })
  expect(code).toBe(6)
  expect(stderr).toMatch(/run_\w+: .*The service accepted this run before, and it may be paid for\./)
  expect(stderr).toContain('Check the runs of your account before you create it again.')
})

it.each([
  ["it's $(odd)", `'it'\\''s $(odd)'`],
  ['-odd', '-- -odd'],
])('open names the run %s as a shell reads it', async (id, word) => {
  const { run } = createHome({ journal: [{ id }] })
  expect((await run('open --last')).stderr).toContain(`\`rushes wait -d ${word}\``)
})

it('status responses with the id of another run end a run with exit 8: no picture is taken, and the run stays unfinished', async () => {
  const { fetch, seen } = createOddService(['r1'], ['r2'])
  const { run, rows, home } = createHome({ fetch })
  const { code, stdout, stderr } = await run(`${RUN} -o ${home}/fox.png`)
  expect({ code, stdout, outputs: seen.outputs }).toEqual({ code: 8, stdout: '', outputs: [] })
  expect(stderr).toMatch(/r1.* it is of another run/s)
  expect(existsSync(`${home}/fox.png`)).toBe(false)
  expect(rows()).toMatchObject([{ id: 'r1', phase: 'running' }])
})

it('a status response with the id of another run is requested again', async () => {
  const { fetch } = createOddService(['r1'], ['r2', 'r1'])
  const { run, home } = createHome({ fetch })
  outputOf(await run(`${RUN} -o ${home}/fox.png`))
  expect(readFileSync(`${home}/fox.png`)).toEqual(PICTURE('/out/r1'))
})

it.each(['status r1', 'cancel r1', 'download r1 -d'])(
  '%s ends with exit 8 if the response has the id of another run',
  async (line) => {
    const { fetch, seen } = createOddService([], ['r2'])
    const { code, stdout } = await createHome({ fetch }).run(line)
    expect({ code, stdout, outputs: seen.outputs }).toEqual({ code: 8, stdout: '', outputs: [] })
  },
)

it('one id for several creates brings one warning, and all creates are in the journal', async () => {
  const { fetch, seen } = createOddService(['r1'], [])
  const { run, rows } = createHome({ fetch })
  const folder = temporaryFolder()
  const { stderr } = await run(`${RUN} -n 3 -o ${folder}/{index}.png`)
  expect(seen.creates).toBe(3)
  expect(stderr.match(/The service gave one id to two creates: r1/g)).toHaveLength(1)
  expect(rows().map(({ id }) => id)).toEqual(['r1', 'r1', 'r1'])
  for (const name of readdirSync(folder)) expect(readFileSync(join(folder, name))).toEqual(PICTURE('/out/r1'))
})

it.each([1, 2])(
  'rows of a batch that got one id are not paid again when the download of output %i fails',
  async (failing) => {
    const family = await createFamily([{ name: 'a', prompt: 'A', count: 2 }])
    const { fetch, seen } = createOddService(['r1'], [])
    let outputs = 0
    const breaking: Fetch = async (request) =>
      request.url.pathname.startsWith('/out/') && ++outputs === failing
        ? responseOf({ status: 401, body: {} })
        : fetch(request)
    expect((await family.run([], { fetch: breaking })).code).toBe(12)
    outputOf(await family.run([], { fetch }))
    expect([seen.creates, family.pictures()]).toEqual([2, ['a-2.png', 'a.png']])
    expect(family.flights()).toEqual({})
  },
)

it('a row of a batch that gets the id of a row with another input is unconfirmed, and takes no picture', async () => {
  const family = await createFamily(['a', 'b', 'c'].map((name) => ({ name, prompt: name })))
  const { fetch, seen } = createOddService(['r1'], [])
  const { code, stderr } = await family.run([], { fetch })
  expect([code, family.pictures(), Object.keys(family.lock())]).toEqual([13, ['a.png'], ['a']])
  expect(stderr).toContain('gave it the id of another create of this command (r1)')
  const { creates } = seen
  expect((await family.run('--only a --only b', { fetch })).code).toBe(13)
  expect([seen.creates, family.pictures()]).toEqual([creates, ['a.png']])
})
